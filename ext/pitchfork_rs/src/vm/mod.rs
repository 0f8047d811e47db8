//! What magnus does not offer, wrapped so that nothing outside this module needs `unsafe`.
#![allow(unsafe_code)]

pub mod compatibility;
pub mod exit;
pub mod fork;
pub mod gvl;
pub mod hash;
pub mod io;
pub mod slots;
pub mod string;
pub mod title;
