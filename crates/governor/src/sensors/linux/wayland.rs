//! Wayland compositors other than GNOME's tell by `ext-idle-notify-v1` when a span without input
//! begins and ends.
//!
//! They tell moments, not durations: the time since the last input is counted from the last moment
//! that is known.

use crate::sensors::Blind;
use std::time::{Duration, Instant};
use wayland_client::{
    Connection, Dispatch, EventQueue, QueueHandle,
    globals::{GlobalListContents, registry_queue_init},
    protocol::{wl_registry::WlRegistry, wl_seat::WlSeat},
};
use wayland_protocols::ext::idle_notify::v1::client::{
    ext_idle_notification_v1::{Event, ExtIdleNotificationV1},
    ext_idle_notifier_v1::ExtIdleNotifierV1,
};

/// The compositor tells of input after a span of this; spans are joined here to what the volunteer
/// wants.
const SPAN: Duration = Duration::from_millis(1000);

/// A compositor that tells.
pub(super) struct Wayland {
    queue: EventQueue<Input>,
    input: Input,
}

/// The last input that is known of.
struct Input {
    last: Instant,
    is_idle: bool,
}

impl Wayland {
    pub(super) const NAME: &str = "ext-idle-notify";

    pub(super) fn connect() -> Result<Self, Blind> {
        let connection = Connection::connect_to_env().map_err(Blind::because)?;
        let (globals, mut queue) =
            registry_queue_init::<Input>(&connection).map_err(Blind::because)?;
        let handle = queue.handle();
        let seat: WlSeat = globals.bind(&handle, 1..=1, ()).map_err(Blind::because)?;
        let notifier: ExtIdleNotifierV1 = globals
            .bind(&handle, 1..=1, ())
            .map_err(|_| Blind("the compositor has no ext-idle-notify".to_owned()))?;
        notifier.get_idle_notification(SPAN.as_millis() as u32, &seat, &handle, ());
        let mut input = Input {
            last: Instant::now(),
            is_idle: false,
        };
        queue.roundtrip(&mut input).map_err(Blind::because)?;
        Ok(Wayland { queue, input })
    }

    /// Milliseconds since the last input that is known of.
    pub(super) fn idle_ms(&mut self) -> Result<u64, Blind> {
        self.queue
            .roundtrip(&mut self.input)
            .map_err(Blind::because)?;
        if !self.input.is_idle {
            return Ok(0);
        }
        Ok(u64::try_from(self.input.last.elapsed().as_millis()).unwrap_or(u64::MAX))
    }
}

impl Dispatch<ExtIdleNotificationV1, ()> for Input {
    fn event(
        input: &mut Self,
        _: &ExtIdleNotificationV1,
        event: Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        match event {
            Event::Idled => {
                input.last = Instant::now()
                    .checked_sub(SPAN)
                    .unwrap_or_else(Instant::now);
                input.is_idle = true;
            }
            _ => input.is_idle = false,
        }
    }
}

impl Dispatch<WlRegistry, GlobalListContents> for Input {
    fn event(
        _: &mut Self,
        _: &WlRegistry,
        _: <WlRegistry as wayland_client::Proxy>::Event,
        _: &GlobalListContents,
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
    }
}

wayland_client::delegate_noop!(Input: ignore WlSeat);
wayland_client::delegate_noop!(Input: ignore ExtIdleNotifierV1);
