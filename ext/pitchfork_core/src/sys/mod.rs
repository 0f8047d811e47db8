//! What only the kernel can do, wrapped so that nothing outside this module needs `unsafe`.
#![allow(unsafe_code)]

pub mod accept;
pub mod alarm;
pub mod alone;
pub mod bell;
pub mod channel;
pub mod clock;
pub mod filter;
pub mod half_open;
pub mod heap;
pub mod limits;
pub mod memory;
pub mod packet;
pub mod process;
pub mod shared;
pub mod stack;
pub mod tcp;
