//! Parts of a window without the window, for the tests of each.

#[path = "../tests/common/mod.rs"]
mod common;

pub use common::*;

use crate::control::{Control, OwnWords};
use crate::core::exchange::gather;
use crate::core::{Core, Flavor};
use crate::options::Options;
use std::rc::Rc;
use weft_fabric::{Fabric, RemoteAddr};
use weft_process::Comm;

/// What every part stands on, on each rank of `comm`.
pub async fn parts<F: Fabric>(
    comm: &Rc<Comm<F>>,
    options: Options,
) -> (Rc<Core<F>>, Rc<Control<F>>) {
    let own_comm = comm.dup().await.expect("a communicator");
    let core = Rc::new(Core::new(own_comm, Flavor::Create, options));
    let words = OwnWords::new(core.endpoint(), core.size(), 1, core.one_node).expect("memory");
    let all = gather(core.comm(), words.at().words()).await.expect("all of them");
    let all = all.into_iter().map(|words| (RemoteAddr::from_words(words), 1));
    let control = Rc::new(Control::new(core.clone(), words, all));
    (core, control)
}

/// The parts go back to the fabric, once all ranks are done with them.
pub async fn end<F: Fabric>(core: &Core<F>) {
    core.comm().barrier().await.expect("all are done");
    core.comm().close().await.expect("the end");
}
