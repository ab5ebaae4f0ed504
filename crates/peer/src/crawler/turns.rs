//! Turns at addresses that other peers may ask, too.

use super::{Crawler, Finding};
use crate::{
    clock::now,
    swarm::addresses::asking::{Grants, TurnAsker},
};
use apoidea_model::Time;

impl Crawler {
    /// Asks the clocks of the addresses at which hosts wait.
    pub(super) fn ask_for_turns(&mut self) {
        let asked = now();
        let wishes = self.parts.frontier.address_wishes(asked);
        if wishes.is_empty() {
            return;
        }
        let swarm = &self.parts.swarm;
        let asker = TurnAsker {
            overlay: swarm.overlay.clone(),
            clocks: swarm.clocks.clone(),
        };
        let findings = swarm.findings.clone();
        tokio::spawn(async move {
            let grants = asker.ask(wishes).await;
            // A peer that has stopped takes no more findings.
            let _ = findings.send(Finding::Granted { asked, grants });
        });
    }

    /// The clocks have answered.
    pub(super) fn take_grants(&mut self, asked: Time, grants: Grants) {
        for (address, grant) in grants {
            self.parts.frontier.granted(address, grant, asked);
        }
    }
}
