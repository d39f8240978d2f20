//! Tree of the categories of variables, by part of the library. The tree never changes.

use crate::settings::SettingPart;

/// Node of the tree.
pub struct VariableCategory {
    pub name: &'static str,
    pub doc: &'static str,
    /// Place of the parent category.
    pub parent: Option<usize>,
    /// Part of the library whose variables belong to the category.
    pub part: Option<SettingPart>,
}

const fn category(
    name: &'static str,
    parent: usize,
    part: SettingPart,
    doc: &'static str,
) -> VariableCategory {
    VariableCategory { name, doc, parent: Some(parent), part: Some(part) }
}

/// All categories. A parent comes before its children.
pub const CATEGORIES: &[VariableCategory] = &[
    VariableCategory { name: "weft", doc: "everything", parent: None, part: None },
    category("weft.p2p", 0, SettingPart::P2p, "messages: protocols, queues, credit"),
    category("weft.collective", 0, SettingPart::Collective, "collective operations"),
    category("weft.rma", 0, SettingPart::Rma, "one-sided communication"),
    category("weft.waiting", 0, SettingPart::Waiting, "how processes wait, and the helper thread"),
    category("weft.fabric", 0, SettingPart::Fabric, "what connects the ranks"),
    category("weft.fabric.shm", 5, SettingPart::Shm, "shared memory"),
    category("weft.fabric.verbs", 5, SettingPart::Verbs, "InfiniBand and RoCE"),
    category("weft.fabric.ofi", 5, SettingPart::Ofi, "libfabric: Ethernet and other networks"),
    category("weft.launch", 0, SettingPart::Launch, "how the job starts"),
    category("weft.files", 0, SettingPart::Files, "parallel files"),
];

/// Returns the name of the category of a part.
pub fn name_of(part: SettingPart) -> &'static str {
    let found = CATEGORIES.iter().find(|c| c.part == Some(part));
    found.map(|c| c.name).expect("every part has a category")
}
