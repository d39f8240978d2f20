//! CollGM: a collective component over Myrinet.

use super::figure::Document;

pub fn document() -> Document {
    Document {
        id: "collgm",
        paper: "CollGM",
        title: "Hoefler et al. 2007, a collective component for Open MPI over Myrinet GM",
        machines: &["collgm"],
        about: "Its subjects are not built yet: segments and pipelined registration, and the \
                algorithms that its selection maps choose between. One broadcast alone shows no best.",
        figures: Vec::new(),
        checks: Vec::new(),
        headlines: Vec::new(),
    }
}
