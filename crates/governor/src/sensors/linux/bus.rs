//! A message bus, asked one thing at a time. A connection that failed is made anew at the next
//! question.

use crate::sensors::Blind;
use zbus::{
    blocking::Connection,
    zvariant::{OwnedValue, Type},
};

/// Which bus.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// The user's own.
    Session,
    /// The machine's.
    System,
}

/// An object on a bus.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub service: &'static str,
    pub path: &'static str,
    pub interface: &'static str,
}

/// A connection, as long as it works.
pub(super) struct Bus {
    kind: Kind,
    connection: Option<Connection>,
}

impl Bus {
    pub(super) fn new(kind: Kind) -> Self {
        Bus {
            kind,
            connection: None,
        }
    }

    /// Calls a method without arguments.
    pub(super) fn call<T>(&mut self, place: Place, method: &str) -> Result<T, Blind>
    where
        T: serde::de::DeserializeOwned + Type,
    {
        let connection = self.connection()?;
        let answer = connection.call_method(
            Some(place.service),
            place.path,
            Some(place.interface),
            method,
            &(),
        );
        self.forget_if_lost(answer)?
            .body()
            .deserialize()
            .map_err(Blind::because)
    }

    /// Reads a property, without subscribing to its changes.
    pub(super) fn property<T>(&mut self, place: Place, name: &str) -> Result<T, Blind>
    where
        T: TryFrom<OwnedValue>,
        T::Error: std::fmt::Display,
    {
        const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
        let connection = self.connection()?;
        let question = (place.interface, name);
        let answer = connection.call_method(
            Some(place.service),
            place.path,
            Some(PROPERTIES),
            "Get",
            &question,
        );
        let value: OwnedValue = self
            .forget_if_lost(answer)?
            .body()
            .deserialize()
            .map_err(Blind::because)?;
        T::try_from(value).map_err(Blind::because)
    }

    fn connection(&mut self) -> Result<Connection, Blind> {
        if let Some(connection) = &self.connection {
            return Ok(connection.clone());
        }
        let made = match self.kind {
            Kind::Session => Connection::session(),
            Kind::System => Connection::system(),
        };
        let made = made.map_err(|error| Blind(format!("no message bus: {error}")))?;
        self.connection = Some(made.clone());
        Ok(made)
    }

    /// An answer that says no comes over a connection that works; anything else does not.
    fn forget_if_lost<T>(&mut self, answer: zbus::Result<T>) -> Result<T, Blind> {
        answer.map_err(|error| {
            if !matches!(error, zbus::Error::MethodError(..)) {
                self.connection = None;
            }
            Blind::because(error)
        })
    }
}
