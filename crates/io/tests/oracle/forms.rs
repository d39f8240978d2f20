//! Forms of accesses, and random hints.

use fastrand::Rng;
use std::rc::Rc;
use weft_fabric_shm::Shm;
use weft_io::{AccessData, AccessSpec, File, Positioning, Synchronism};
use weft_process::{Buffer, Info, Single};

/// Form of an access.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Form {
    Blocking,
    Background,
    Collective,
    CollectiveBackground,
    Ordered,
    /// At the shared pointer, rank after rank.
    Shared,
}

pub const FORMS: [Form; 6] = [
    Form::Blocking,
    Form::Background,
    Form::Collective,
    Form::CollectiveBackground,
    Form::Ordered,
    Form::Shared,
];

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

/// Open file.
pub type OpenFile = Rc<File<Shm>>;

/// Does one access. Returns the number of moved bytes.
pub async fn access(
    file: &OpenFile,
    form: Form,
    spec: AccessSpec,
    buffer: Buffer,
) -> Result<u64, weft_process::Error> {
    let data = AccessData::from(buffer);
    let direction = spec.direction;
    let independent = async |data: AccessData| match file.independent(spec, &data) {
        Some(access) => access,
        None => file.independent_shared(direction, data).await,
    };
    match form {
        Form::Blocking if file.uses_atomic_lock() => {
            file.run_with_atomic_lock(&independent(data).await?).await
        }
        Form::Blocking => file.run_blocking(&independent(data).await?, &Single),
        Form::Background => file.run_background(independent(data).await?).await,
        Form::Collective => file.collective(spec, Synchronism::Blocking, data)?.await,
        Form::CollectiveBackground => file.collective(spec, Synchronism::Nonblocking, data)?.await,
        Form::Ordered => {
            let spec = AccessSpec { direction, positioning: Positioning::Shared };
            file.collective(spec, Synchronism::Blocking, data)?.await
        }
        Form::Shared => {
            let mut moved = Ok(0);
            for turn in 0..file.comm().size() {
                if turn == file.comm().rank() {
                    let access = file.independent_shared(direction, data.clone()).await?;
                    moved = file.run_background(access).await;
                }
                file.comm().barrier().await?;
            }
            moved
        }
    }
}
