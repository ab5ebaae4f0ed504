//! Carrying out the orders of the swarm.

use super::{Crawler, admitter::AdmitError};
use crate::{
    clock::now,
    swarm::{orders::SwarmOrder, replicas::replica::Replica, tenancy::Weight},
};
use apoidea_model::PeerId;
use tokio::sync::oneshot;

/// A replica of another peer that waits to be taken in.
pub(super) struct Adoption {
    pub from: PeerId,
    pub replica: Box<Replica>,
    pub reply: oneshot::Sender<()>,
}

impl Crawler {
    pub(super) async fn obey_swarm(&mut self, order: SwarmOrder) {
        match order {
            SwarmOrder::Borrow(owner, borrow, reply) => self.borrow(owner, borrow, reply),
            SwarmOrder::Result(helper, result) => self.take_result(helper, *result).await,
            SwarmOrder::Watch(peer, ask, reply) => self.watch(peer, ask, reply).await,
            order => {
                if let Err(error) = self.change_domains(order) {
                    self.note_trouble(&error);
                }
            }
        }
    }

    /// Carries out an order that changes what is known of domains.
    fn change_domains(&mut self, order: SwarmOrder) -> Result<(), AdmitError> {
        let now = now();
        match order {
            SwarmOrder::Admit(sender, batch, reply) => {
                self.admit_foreign(sender, batch, reply, now)?;
            }
            SwarmOrder::SendAgain(crawl, links, reply) => {
                self.deliver(crawl, links, None, now)?;
                let _ = reply.send(());
            }
            SwarmOrder::Deltas(deltas, reply) => {
                let answers = deltas.iter().map(|delta| self.take_delta(delta)).collect();
                let _ = reply.send(answers);
            }
            SwarmOrder::Adopt(from, domain, replica, reply) => {
                let adoption = Adoption {
                    from,
                    replica,
                    reply,
                };
                self.adopt(domain, adoption, now);
            }
            SwarmOrder::Rounds(deltas, reply) => {
                let taken = self.take_rounds(&deltas);
                let _ = reply.send(());
                taken?;
            }
            SwarmOrder::Pages(from, domain, pages, reply) => {
                if self.parts.swarm.tenancy.weigh(from, domain.key()) == Weight::Vouched {
                    self.join_pages(&domain, pages, now)?;
                }
                let _ = reply.send(());
            }
            SwarmOrder::Lose(arc) => self.lose(arc, now)?,
            SwarmOrder::Drained(arc, reply) => drop(reply.send(self.is_drained(arc))),
            SwarmOrder::Activate(arc, reply) => {
                let activated = self.activate(arc, now);
                let _ = reply.send(());
                activated?;
            }
            SwarmOrder::PassOn(domain, versions) => self.pass_on(&domain, &versions, now)?,
            SwarmOrder::Forget(domain, versions) => self.forget(&domain, &versions)?,
            SwarmOrder::Quiesce(quiescing) => {
                self.quiescing = Some(quiescing);
                self.take_allowance();
            }
            SwarmOrder::Borrow(..) | SwarmOrder::Result(..) | SwarmOrder::Watch(..) => {}
        }
        Ok(())
    }
}
