//! Files on several ranks, compared with models of their bytes and of their system calls. All tests are one program, because they
//! share most of the compiled code of the crates below.
#![cfg(not(miri))]

mod faulty;
mod forms;
mod world;

mod lost_writes;
mod random_programs;
mod several_openings;
mod system_calls;
