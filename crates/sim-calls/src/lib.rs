//! `libweft_sim_calls.so`: a layer between a program and the MPI library for jobs in virtual time (`weft sim run`).
//!
//! The launcher loads it before the program's libraries. Each call `MPI_X` of the program comes here first, and goes on as
//! `PMPI_X`. The processor time that the thread has taken since the last call is the program's computing: the layer adds it to the
//! rank's slot, where the simulation finds it with the next request. The slot also says which function runs, for the report.
//!
//! ```text
//!   program ── computes ──▶ MPI_Send ── compute += processor time, call = MPI_Send ──▶ PMPI_Send ── requests ──▶ simulation
//!                                    ◀─ call = none ──────────────────────────────────
//! ```
//! With `WEFT_SIM_CLOCKS=1` the clocks and sleeps of the system follow virtual time, too (`clocks.rs`).

mod clocks;
mod counts;
mod library;
mod slot;
mod system_clock;
mod thread_clock;

/// Defines the entry point of an MPI function.
macro_rules! entry_point {
    ($index:literal $name:ident $pmpi:literal ($($argument:ident)*) -> $result:ident) => {
        /// Passes a call of the program on.
        ///
        /// # Safety
        /// The program keeps MPI's rules for its arguments.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($argument: usize),*) -> $result {
            static ADDRESS: weft_client::ClientFunction = weft_client::ClientFunction::new($pmpi);
            let call = $crate::slot::TracedCall::begin($index);
            // SAFETY: the library's function has these parameters. Each is an integer or a pointer, which the caller passed in the
            // same register or place.
            let result = unsafe {
                let function: unsafe extern "C-unwind" fn($(entry_point!(@type $argument)),*) -> $result =
                    std::mem::transmute(ADDRESS.address($crate::library::find));
                function($($argument),*)
            };
            call.end();
            result
        }
    };
    (@type $argument:ident) => { usize };
}

include!(concat!(env!("OUT_DIR"), "/calls.rs"));
