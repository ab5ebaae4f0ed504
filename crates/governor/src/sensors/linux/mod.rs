//! What Linux desktops tell: user activity over one of three ways, power and network over the
//! system bus.

mod activity;
mod bus;
mod mutter;
mod network_manager;
mod upower;
mod wayland;
mod x11;

pub(super) use activity::UserActivity;
pub(super) use network_manager::Connection;
pub(super) use upower::PowerSupply;
