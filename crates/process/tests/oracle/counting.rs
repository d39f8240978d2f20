//! Shared memory that counts registrations: regions that are allocated or exposed.

use std::cell::Cell;
use weft_fabric::{
    Fabric, FabricExt, Facets, Fault, Flag, FlagKind, PeerWords, Region, RemoteAddr, Sge,
};
use weft_fabric_shm::Shm;

thread_local! {
    /// Numbers of regions of the fabric's memory, and of the program's, by this thread's rank.
    pub static ALLOCATED: Cell<u64> = const { Cell::new(0) };
    pub static EXPOSED: Cell<u64> = const { Cell::new(0) };
}

pub struct Counting(pub Shm);

macro_rules! pass {
    ($($methods:tt)*) => { pass_by! { Fabric: $($methods)* } };
}

macro_rules! pass_part {
    ($($methods:tt)*) => { pass_by! { FabricExt: $($methods)* } };
}

macro_rules! pass_by {
    ($by:ident: $(fn $name:ident(&self $(, $arg:ident: $ty:ty)*) $(-> $result:ty)?;)*) => {$(
        fn $name(&self, $($arg: $ty),*) $(-> $result)? {
            $by::$name(&self.0 $(, $arg)*)
        }
    )*};
}

macro_rules! count {
    ($by:ident: $(fn $name:ident($arg:ident: $ty:ty) in $count:ident;)*) => {$(
        fn $name(&self, $arg: $ty) -> Result<Region, Fault> {
            $count.set($count.get() + 1);
            $by::$name(&self.0, $arg)
        }
    )*};
}

impl Fabric for Counting {
    /// Returns the facets of shared memory, except that it does not report spare memory and words.
    fn facets(&self) -> Facets<'_> {
        Facets {
            mapped_memory: Some(self),
            immediates: Some(self),
            helper: Some(self),
            multicast: Some(self),
            ..Facets::NONE
        }
    }

    count! { Fabric:
        fn allocate(len: usize) in ALLOCATED;
        fn expose(memory: Sge) in EXPOSED;
    }

    pass! {
        fn withdraw(&self, region: Region);
        fn flag(&self, region: &Region, offset: usize, kind: FlagKind) -> Flag;
    }

    weft_fabric::methods!(Fabric, pass);
    weft_fabric::methods!(OneSided, pass);
    weft_fabric::methods!(Messages, pass);
}

impl weft_fabric::MappedMemory for Counting {
    count! { FabricExt:
        fn allocate_on_node(len: usize) in ALLOCATED;
        fn allocate_spare(len: usize) in ALLOCATED;
    }

    pass_part! {
        fn lies_within(&self, memory: Sge) -> bool;
        fn mapped(&self, peer: usize, at: RemoteAddr, len: usize) -> Option<Sge>;
        fn shown(&self, peer: usize, at: RemoteAddr, len: usize) -> Option<Sge>;
        fn populate(&self, memory: Sge);
    }

    fn words(&self, _peer: usize, _at: RemoteAddr, _count: usize) -> Option<PeerWords> {
        None
    }
}

impl weft_fabric::Immediates for Counting {
    weft_fabric::methods!(Immediates, pass_part);
}

impl weft_fabric::Helper for Counting {
    weft_fabric::methods!(Helper, pass_part);
}

impl weft_fabric::Multicast for Counting {
    weft_fabric::methods!(Multicast, pass_part);
}
