//! Routing of a request to its world, by its path or its key.

use std::sync::{Arc, atomic::Ordering};

use http::HeaderValue;
use reference_core::{id::Code, key::KEY_TAG_MAX};
use reference_wire::bearer;
use tokio::time::Instant;

use super::{OpenedWorld, Worlds, api};
use crate::{backend::Backend, refusal::Refusal};

/// The world of a request, kept open while the request is in progress.
pub(crate) struct AddressedWorld<'a> {
    first: &'a Arc<Backend>,
    /// The use of an opened world; `None` for the first world.
    world_use: Option<WorldUse>,
    /// The path without the `/w/{id}` of the world.
    pub(crate) path: &'a str,
}

/// Guard: a use of a world, during which it is not idle.
struct WorldUse(Arc<OpenedWorld>);

impl AddressedWorld<'_> {
    /// Returns the world.
    pub(crate) fn backend(&self) -> &Arc<Backend> {
        self.world_use.as_ref().map_or(self.first, |world_use| &world_use.0.backend)
    }
}

impl Drop for WorldUse {
    fn drop(&mut self) {
        let mut usage = self.0.usage();
        usage.requests_in_progress -= 1;
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
        if let Some(id_and_path) = path.strip_prefix("/w/") {
            let id = id_and_path.split('/').next().unwrap_or_default();
            let rest = &id_and_path[id.len()..];
            let world = Code::parse(id).and_then(|id| self.begin_use(id)).ok_or(Refusal::UnknownWorld)?;
            let path = if rest.is_empty() { "/" } else { rest };
            return Ok(AddressedWorld { first: &self.first, world_use: Some(world), path });
        }
        let world_use = match path.trim_start_matches('/').split('/').next() {
            Some("v1" | "mcp") if self.open_count.load(Ordering::Acquire) > 0 => {
                authorization.and_then(|authorization| self.world_of_key(authorization))
            }
            Some("sandbox") if !api::is_worlds_path(path) => match authorization {
                Some(authorization) => self.sandbox_world_of_key(authorization)?,
                None => None,
            },
            _ => None,
        };
        Ok(AddressedWorld { first: &self.first, world_use, path })
    }

    /// Returns `true` if stored worlds are waiting to be opened.
    pub(crate) fn has_waiting(&self) -> bool {
        self.waiting.remaining() > 0
    }

    /// Waits for the world that a path or a key selects, if it is stored and not open yet.
    pub(crate) async fn wait_for(&self, path: &str, authorization: Option<&HeaderValue>) {
        let id = match path.strip_prefix("/w/") {
            Some(id_and_path) => id_and_path.split('/').next().and_then(Code::parse),
            None => authorization.and_then(|authorization| self.id_in_key(authorization)),
        };
        if let Some(id) = id {
            self.waiting.prioritize_and_wait(id).await;
        }
    }

    /// Returns the text in the place of the world id in a key, if it is a valid id.
    fn id_in_key(&self, authorization: &HeaderValue) -> Option<Code> {
        Code::parse(std::str::from_utf8(self.secret_of(authorization)?.get(..KEY_TAG_MAX)?).ok()?)
    }

    /// Starts a use of the open world whose id is in a key.
    fn world_of_key(&self, authorization: &HeaderValue) -> Option<WorldUse> {
        self.begin_use(self.id_in_key(authorization)?)
    }

    /// Returns the world of a sandbox request, where a key only selects the world. A request with the key of an ended world
    /// is refused, so that it does not change the first world.
    fn sandbox_world_of_key(&self, authorization: &HeaderValue) -> Result<Option<WorldUse>, Refusal> {
        if self.secret_of(authorization).is_none() {
            return Ok(None);
        }
        match self.world_of_key(authorization) {
            None if !self.first.host.knows_key(authorization.as_bytes())? => Err(Refusal::KeyWithoutWorld),
            world => Ok(world),
        }
    }

    /// Returns the part of a key after its mode; `None` if it is not a key.
    fn secret_of<'h>(&self, authorization: &'h HeaderValue) -> Option<&'h [u8]> {
        let text = bearer(Some(authorization.as_bytes()))?;
        self.key_starts.iter().find_map(|start| text.strip_prefix(start.as_bytes()))
    }

    /// Counts a use of an open world, which ends with the returned guard.
    fn begin_use(&self, id: Code) -> Option<WorldUse> {
        let opened = self.read_open_worlds();
        let world = opened.worlds.get(opened.by_id.get(&id)?)?;
        // Counted under the lock that ends idle worlds, so that this one does not end in between.
        world.usage().requests_in_progress += 1;
        Some(WorldUse(Arc::clone(world)))
    }
}
