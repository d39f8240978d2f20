//! Parts of a window without the window, for the tests of each part.

#[path = "../tests/common/mod.rs"]
mod common;

pub use common::*;

use crate::control::{OwnWords, WindowControl};
use crate::core::exchange::gather;
use crate::core::{WindowCore, WindowFlavor};
use crate::options::WindowOptions;
use std::rc::Rc;
use weft_fabric::{Fabric, RemoteAddr};
use weft_process::Comm;

/// Makes the parts on which every other part depends, on each rank of `comm`.
pub async fn parts<F: Fabric>(
    comm: &Rc<Comm<F>>,
    options: WindowOptions,
) -> (Rc<WindowCore<F>>, Rc<WindowControl<F>>) {
    let own_comm = comm.dup().await.expect("a communicator");
    let core = Rc::new(WindowCore::new(own_comm, WindowFlavor::Create, options));
    let words = OwnWords::new(&core, 1).expect("memory");
    let all = gather(core.comm(), words.at().words()).await.expect("all of them");
    let all = all.into_iter().map(|words| (RemoteAddr::from_words(words), 1));
    let control = Rc::new(WindowControl::new(core.clone(), words, all));
    (core, control)
}

/// Ends the parts, once all ranks have finished with them.
pub async fn end<F: Fabric>(core: &WindowCore<F>) {
    core.comm().barrier().await.expect("all are done");
    core.comm().close().await.expect("the end");
}
