//! The sockets that a worker's hook has opened for that worker alone.

use std::sync::{Mutex, PoisonError};

use pitchfork_core::listen::Listener;

/// `None` but while a hook runs that may add to it.
static OPENED: Mutex<Option<Vec<Listener>>> = Mutex::new(None);

fn opened() -> std::sync::MutexGuard<'static, Option<Vec<Listener>>> {
    OPENED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether sockets may be added now.
pub fn is_open() -> bool {
    opened().is_some()
}

/// From now on sockets may be added.
pub fn open() {
    *opened() = Some(Vec::new());
}

/// Adds sockets. They are closed if nobody waits for them.
pub fn add(listeners: Vec<Listener>) {
    if let Some(opened) = &mut *opened() {
        opened.extend(listeners);
    }
}

/// What was added; nothing more may be.
pub fn close() -> Vec<Listener> {
    opened().take().unwrap_or_default()
}
