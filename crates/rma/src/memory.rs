//! The memory of a window: this rank's own part, the parts of the other ranks, and the places on which operations act (MPI 5.0,
//! sections 12.2 and 12.3).
//!
//! ```text
//!   allocation.rs       making this rank's part: MPI_Win_create, allocate, allocate_shared
//!   exposed.rs          each rank's information about its part, exchanged when the window is made
//!   attached.rs         the memory of dynamic windows: MPI_Win_attach, detach
//!   placement.rs        from rank, displacement and datatype to a TargetAddress (target_address.rs)
//!   regions.rs          a TargetAddress for each part of data in several attached regions
//!   protocol.rs         protocols of puts and gets: mapped, system, adapter, target-assisted
//! ```
//! Contract: this part finds the address of memory and the way to reach the memory, and moves no data. Its answers for a rank's
//! part never change.

pub mod allocation;
pub mod attached;
pub mod exposed;
mod placement;
pub mod protocol;
pub mod regions;
pub mod target_address;

use self::allocation::OwnMemory;
use self::attached::AttachedMemory;
use self::exposed::ExposedWindow;
use self::target_address::{AtomicityDomain, TargetReach};
use crate::control::WindowControl;
use crate::core::{WindowCore, WindowFlavor};
use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use weft_fabric::{Fabric, FabricExt, Region, Sge};

/// Part of one rank in the window.
struct ByRank {
    exposed: ExposedWindow,
    /// Agent that updates words of the part.
    domain: AtomicityDomain,
    reach: OnceCell<TargetReach>,
    /// The part, if it is mapped and operations need not be deferred to a fence; the field is empty until `reach` is known.
    mapped: Cell<Sge>,
}

/// The memory of one window.
pub struct WindowMemory<F: Fabric> {
    core: Rc<WindowCore<F>>,
    control: Rc<WindowControl<F>>,
    /// This rank's part, and its registration by the fabric.
    own: Sge,
    region: Option<Region>,
    ranks: Box<[ByRank]>,
    attached: AttachedMemory,
}

impl<F: Fabric> WindowMemory<F> {
    /// Creates the memory from this rank's own part, and from the information about all ranks' parts.
    pub fn new(
        core: Rc<WindowCore<F>>,
        control: Rc<WindowControl<F>>,
        own: OwnMemory,
        all: impl Iterator<Item = ExposedWindow>,
    ) -> WindowMemory<F> {
        let rank = |exposed: ExposedWindow| ByRank {
            exposed,
            domain: match exposed.adapters {
                true => AtomicityDomain::Adapters,
                false => placement::by_processors(core.one_node, exposed.within),
            },
            reach: OnceCell::new(),
            mapped: Cell::new(Sge::EMPTY),
        };
        let OwnMemory { memory: own, region, .. } = own;
        let (ranks, attached) = (all.map(rank).collect(), AttachedMemory::default());
        WindowMemory { core, control, own, region, ranks, attached }
    }

    /// Returns this rank's part; empty in a dynamic window.
    pub fn own(&self) -> Sge {
        self.own
    }

    /// Returns the exposed part of a rank.
    #[inline]
    pub fn exposed(&self, rank: usize) -> &ExposedWindow {
        &self.ranks[rank].exposed
    }

    /// Returns the agent that updates words of a rank's part.
    #[inline]
    pub fn domain(&self, rank: usize) -> AtomicityDomain {
        self.ranks[rank].domain
    }

    /// Returns the way in which this process reaches the part of a rank. The way is computed only once.
    #[inline]
    pub fn reach(&self, rank: usize) -> TargetReach {
        let part = &self.ranks[rank];
        *part.reach.get_or_init(|| {
            let reach = self.look(rank);
            if let TargetReach::Mapped(memory) = reach
                && !self.core.options.fence.defers()
            {
                part.mapped.set(memory);
            }
            reach
        })
    }

    /// Returns the way in which this process reaches a rank's part, if that way was computed before.
    pub fn known_reach(&self, rank: usize) -> Option<TargetReach> {
        self.ranks[rank].reach.get().copied()
    }

    fn look(&self, rank: usize) -> TargetReach {
        if rank == self.core.rank() {
            return TargetReach::Mapped(self.own);
        }
        let ExposedWindow { memory: at, len, holder, within, .. } = *self.exposed(rank);
        let (peer, len) = (self.core.peer(holder as usize), len as usize);
        if self.core.flavor == WindowFlavor::Shared
            && let Some(memory) = self.core.fabric().shown(peer, at, len)
        {
            return TargetReach::Mapped(memory);
        }
        self.reach_of(peer, at, len, within)
    }

    /// Returns `len` bytes at a displacement of a rank, if an operation may act there at once. Returns `None` if the caller must
    /// use [`WindowMemory::locate`].
    #[inline(always)]
    pub fn mapped(&self, rank: usize, disp: i64, len: usize) -> Option<Sge> {
        let part = self.ranks.get(rank)?;
        let memory = part.mapped.get();
        let offset = usize::try_from(disp).ok()?.checked_mul(part.exposed.unit as usize)?;
        let inside = offset <= memory.len() && len <= memory.len() - offset;
        inside.then(|| memory.part(offset, len))
    }

    /// Returns true if only a rank's own process reaches the rank's memory.
    pub fn needs_service(&self, rank: usize) -> bool {
        let reachable = self.exposed(rank).within && self.core.flavor != WindowFlavor::Dynamic;
        rank != self.core.rank()
            && !reachable
            && !self.core.fabric().capabilities(self.core.peer(rank)).direct
    }

    /// Withdraws all registrations of this rank.
    pub fn withdraw(&self) {
        self.withdraw_attached();
        if let Some(region) = self.region {
            self.core.fabric().withdraw(region);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::core::target_location::TargetLocation;
    use crate::options::{FenceDesign, WindowOptions};
    use crate::testing::{AINT, ALL, Numbers, Program, end, parts, run_at, ty};
    use weft_process::{Comm, class};

    /// Test: a window has memory for four numbers at each rank, and each rank locates its own memory.
    #[derive(Clone, Copy)]
    struct Finding(FenceDesign);

    impl Program for Finding {
        async fn run<F: Fabric>(self, comm: Rc<Comm<F>>) {
            let options = WindowOptions { fence: self.0, ..WindowOptions::default() };
            let (core, control) = parts(&comm, options).await;
            let numbers = Numbers::new(&comm, &[1, 2, 3, 4]);
            let brings = allocation::WindowOffer::Own(numbers.sge());
            let own = OwnMemory::new(core.comm(), &brings).await.unwrap();
            let exposed = ExposedWindow {
                memory: own.at,
                control: control.own().at(),
                len: 32,
                unit: 8,
                holder: core.rank() as u64,
                immediate: 0,
                within: own.within,
                rails: 1,
                adapters: false,
            };
            // In this test all ranks expose the same memory, because each rank only looks at its own part.
            let all = (0..core.size()).map(|_| exposed);
            let memory = WindowMemory::new(core.clone(), control, own, all);
            let (me, word) = (core.rank(), ty(AINT));
            let at = |disp, count| TargetLocation { rank: me, disp, count, ty: &word };
            assert_eq!(memory.mapped(me, 0, 8), None, "nobody has looked yet");
            let place = memory.locate(&at(1, 3)).await.unwrap();
            assert_eq!((place.offset, place.own), (8, 8));
            assert!(matches!(place.reach, TargetReach::Mapped(seen) if seen == numbers.sge()));
            for (disp, count, class) in [(2, 3, class::RMA_RANGE), (-1, 1, class::DISP)] {
                let outside = memory.locate(&at(disp, count)).await.unwrap_err();
                assert_eq!(outside.class(), class);
            }
            match self.0 {
                FenceDesign::TwoSided => assert_eq!(memory.mapped(me, 0, 8), None),
                _ => {
                    assert_eq!(memory.mapped(me, 1, 24), Some(numbers.sge().part(8, 24)));
                    assert_eq!((memory.mapped(me, 1, 25), memory.mapped(me, -1, 8)), (None, None));
                }
            }
            core.comm().barrier().await.unwrap();
            memory.withdraw();
            end(&core).await;
        }
    }

    #[test]
    fn locations_are_found_and_checked() {
        for place in ALL {
            run_at(place, 2, Finding(FenceDesign::Acknowledged));
            run_at(place, 2, Finding(FenceDesign::TwoSided));
        }
    }
}
