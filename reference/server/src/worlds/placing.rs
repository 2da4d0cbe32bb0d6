//! Routing of a request to its world, by its path or its key.

use std::sync::{Arc, atomic::Ordering};

use http::HeaderValue;
use reference_core::{id::Code, key::KEY_TAG_MAX};
use reference_wire::bearer;
use tokio::time::Instant;

use super::{OpenedWorld, Worlds, api};
use crate::{backend::Backend, refusal::Refusal};

/// The world of a request, kept open while the request is answered.
pub(crate) struct AddressedWorld<'a> {
    first: &'a Arc<Backend>,
    stay: Option<WorldUse>,
    /// The path below the world.
    pub(crate) path: &'a str,
}

/// A use of a world, during which it is not idle.
struct WorldUse(Arc<OpenedWorld>);

impl AddressedWorld<'_> {
    /// Returns the world.
    pub(crate) fn backend(&self) -> &Arc<Backend> {
        self.stay.as_ref().map_or(self.first, |stay| &stay.0.backend)
    }
}

impl Drop for WorldUse {
    fn drop(&mut self) {
        let mut usage = self.0.usage();
        usage.under_way -= 1;
        usage.idle_since = Instant::now();
    }
}

impl Worlds {
    /// Returns the world that a path or a key selects. `path`: without the public prefix.
    pub(crate) fn select_world<'a>(
        &'a self,
        path: &'a str,
        authorization: Option<&HeaderValue>,
    ) -> Result<AddressedWorld<'a>, Refusal> {
        if let Some(named) = path.strip_prefix("/w/") {
            let id = named.split('/').next().unwrap_or_default();
            let rest = &named[id.len()..];
            let world = Code::parse(id).and_then(|id| self.enter(id)).ok_or(Refusal::UnknownWorld)?;
            let path = if rest.is_empty() { "/" } else { rest };
            return Ok(AddressedWorld { first: &self.first, stay: Some(world), path });
        }
        let stay = match path.trim_start_matches('/').split('/').next() {
            Some("v1" | "mcp") if self.open.load(Ordering::Acquire) > 0 => {
                authorization.and_then(|shown| self.world_of_key(shown))
            }
            Some("sandbox") if !api::is_worlds_path(path) => match authorization {
                Some(shown) => self.sandbox_world_of_key(shown)?,
                None => None,
            },
            _ => None,
        };
        Ok(AddressedWorld { first: &self.first, stay, path })
    }

    /// Returns `true` if stored worlds are waiting to be opened.
    pub(crate) fn has_waiting(&self) -> bool {
        self.waiting.remaining() > 0
    }

    /// Waits for the world that a path or a key selects, if it is stored and not open yet.
    pub(crate) async fn wait_for(&self, path: &str, authorization: Option<&HeaderValue>) {
        let id = match path.strip_prefix("/w/") {
            Some(named) => named.split('/').next().and_then(Code::parse),
            None => authorization.and_then(|shown| self.id_in_key(shown)),
        };
        if let Some(id) = id {
            self.waiting.open(id).await;
        }
    }

    /// Returns the world id in a key.
    fn id_in_key(&self, shown: &HeaderValue) -> Option<Code> {
        Code::parse(std::str::from_utf8(self.secret_of(shown)?.get(..KEY_TAG_MAX)?).ok()?)
    }

    fn world_of_key(&self, shown: &HeaderValue) -> Option<WorldUse> {
        self.enter(self.id_in_key(shown)?)
    }

    /// Returns the world of a sandbox request, where a key only selects the world. The key of an ended world must not act on
    /// the first world.
    fn sandbox_world_of_key(&self, shown: &HeaderValue) -> Result<Option<WorldUse>, Refusal> {
        if self.secret_of(shown).is_none() {
            return Ok(None);
        }
        match self.world_of_key(shown) {
            None if !self.first.host.knows_key(shown.as_bytes())? => Err(Refusal::KeyOfNoWorld),
            world => Ok(world),
        }
    }

    /// Returns the part of a key after its mode; `None` if it is not a key.
    fn secret_of<'h>(&self, shown: &'h HeaderValue) -> Option<&'h [u8]> {
        let text = bearer(Some(shown.as_bytes()))?;
        self.key_starts.iter().find_map(|start| text.strip_prefix(start.as_bytes()))
    }

    fn enter(&self, id: Code) -> Option<WorldUse> {
        let opened = self.read_opened();
        let world = opened.worlds.get(opened.by_id.get(&id)?)?;
        // Counted under the lock that ends idle worlds, so that this one does not end in between.
        world.usage().under_way += 1;
        Some(WorldUse(Arc::clone(world)))
    }
}
