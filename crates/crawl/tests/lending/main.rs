//! Lending: random sequences of events against a model, and a swarm of a thousand simulated peers.

mod sequences;
mod swarm;
