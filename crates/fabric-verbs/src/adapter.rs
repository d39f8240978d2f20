//! Adapters, as libibverbs and the kernel show them: devices and ports, objects and calls, and the paths of packets.

pub mod calls;
pub mod device;
pub mod interfaces;
pub mod library;
pub mod manager;
pub mod numa;
pub mod object;
pub mod path;
pub mod subnets;
