//! Keeping the service, if there is to be one: forked from the current mold, and replaced with it.

use super::{Child, Kind, Turn};

impl Turn<'_> {
    /// It serves nobody, so it counts as nobody's absence: an outdated one is replaced at once.
    pub(super) fn keep_service(&mut self) {
        if !self.state.settings.service {
            return;
        }
        let Some(mold) = self.state.mold().filter(|mold| mold.is_ready()) else { return };
        let (forker, generation) = (mold.token, mold.generation);
        match self.state.children.service() {
            Some(service) if service.is_ready() && self.state.is_outdated(service) => {
                self.dismiss_to_replace(service.token);
            }
            None if self.state.service_backoff.is_over(self.now) && self.may_ask(forker) => {
                self.spawn(forker, generation, Kind::Service);
            }
            _ => {}
        }
    }

    pub(super) fn account_for_service(&mut self, service: &Child) {
        if self.has_failed(service) {
            self.state.service_backoff.fail(self.now);
        } else {
            self.state.service_backoff.succeed();
        }
    }
}
