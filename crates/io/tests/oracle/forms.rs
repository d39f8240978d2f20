//! Forms of accesses, and random hints.

use fastrand::Rng;
use std::rc::Rc;
use weft_fabric_shm::Shm;
use weft_io::{Direction, File, Place};
use weft_process::{Buffer, Info, Single};

/// A form of access.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Form {
    Here,
    Beside,
    Together,
    TogetherBeside,
    Ordered,
    /// By the shared pointer, rank after rank.
    Shared,
}

pub const FORMS: [Form; 6] =
    [Form::Here, Form::Beside, Form::Together, Form::TogetherBeside, Form::Ordered, Form::Shared];

impl Form {
    /// Reports whether a rank's access begins at the end of the access of the rank before.
    pub fn goes_on(self) -> bool {
        matches!(self, Form::Ordered | Form::Shared)
    }
}

/// Draws hints.
pub fn hints(rng: &mut Rng) -> Info {
    let mut info = Info::default();
    let words = ["automatic", "enable", "disable"];
    info.set("cb_buffer_size", &rng.usize(1..300).to_string());
    info.set("cb_nodes", &rng.usize(1..7).to_string());
    info.set("striping_unit", &rng.usize(1..64).to_string());
    info.set("ind_wr_buffer_size", &rng.usize(1..200).to_string());
    info.set("ind_rd_buffer_size", &rng.usize(1..200).to_string());
    for key in ["romio_cb_read", "romio_cb_write", "romio_ds_read", "romio_ds_write"] {
        info.set(key, words[rng.usize(..3)]);
    }
    info
}

/// An open file.
pub type Opened = Rc<File<Shm>>;

/// Does one access. Returns the number of moved bytes.
pub async fn access(
    file: &Opened,
    form: Form,
    (direction, place): (Direction, Place),
    buffer: Buffer,
) -> Result<u64, weft_process::Error> {
    let alone = async |buffer: Buffer| match file.alone((direction, place), &buffer, &None) {
        Some(operation) => operation,
        None => file.alone_shared(direction, buffer, None).await,
    };
    match form {
        Form::Here if file.waits() => file.run_waiting(&alone(buffer).await?).await,
        Form::Here => file.run_here(&alone(buffer).await?, &Single),
        Form::Beside => file.run_beside(alone(buffer).await?).await,
        Form::Together => file.together((direction, place, false), buffer, None)?.await,
        Form::TogetherBeside => file.together((direction, place, true), buffer, None)?.await,
        Form::Ordered => file.together((direction, Place::Shared, false), buffer, None)?.await,
        Form::Shared => {
            let mut moved = Ok(0);
            for turn in 0..file.comm().size() {
                if turn == file.comm().rank() {
                    let operation = file.alone_shared(direction, buffer.clone(), None).await?;
                    moved = file.run_beside(operation).await;
                }
                file.comm().barrier().await?;
            }
            moved
        }
    }
}
