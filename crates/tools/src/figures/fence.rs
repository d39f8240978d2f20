//! Fence: designs of fence synchronization.

use super::figure::Document;

pub fn document() -> Document {
    Document {
        id: "fence",
        paper: "Fence",
        title: "Santhanaraman et al. 2009, design alternatives for fence synchronization",
        machines: &["fence"],
        about: "One-sided communication is not built yet, and so none of its four designs.",
        figures: Vec::new(),
        maps: Vec::new(),
        checks: Vec::new(),
        headlines: Vec::new(),
    }
}
