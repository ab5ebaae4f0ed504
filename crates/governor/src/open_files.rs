//! As many open files as the system lets this program have.
//!
//! Systems start programs with 256 (macOS) or 1,024 (Linux) for the sake of old ones that cannot
//! count further, and let each ask for more. A connection is an open file too: a peer with a
//! thousand fetches would run out of them.

/// Asks for as many as are allowed. Windows has no such limit.
pub fn allow_all() {
    #[cfg(unix)]
    unix::allow_all();
}

#[cfg(unix)]
mod unix {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    /// More than this nobody needs, and macOS refuses to be asked for more (its `OPEN_MAX`).
    const ENOUGH: u64 = 10_240;

    pub(super) fn allow_all() {
        let now = getrlimit(Resource::Nofile);
        let wanted = now.maximum.map_or(ENOUGH, |most| most.min(ENOUGH));
        if now.current.is_none_or(|current| current >= wanted) {
            return;
        }
        if let Err(error) = setrlimit(
            Resource::Nofile,
            Rlimit {
                current: Some(wanted),
                maximum: now.maximum,
            },
        ) {
            tracing::debug!(%error, "no more open files were allowed");
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_low_limit_is_raised_and_a_high_one_kept() {
            let most = getrlimit(Resource::Nofile).maximum;
            setrlimit(
                Resource::Nofile,
                Rlimit {
                    current: Some(256),
                    maximum: most,
                },
            )
            .unwrap();
            allow_all();
            let raised = getrlimit(Resource::Nofile).current;
            assert_eq!(raised, Some(most.map_or(ENOUGH, |most| most.min(ENOUGH))));
            allow_all();
            assert_eq!(getrlimit(Resource::Nofile).current, raised);
        }
    }
}
