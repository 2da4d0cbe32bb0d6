//! The whole state of a world in bytes, for hosts that keep worlds.
//!
//! Every type of the state derives how it is written, in the order of its fields: another version of the program reads
//! something else out of the same bytes, so whoever keeps them keeps with them who wrote them. What can be found out of the
//! rest is left out, and found out again by [`Sandbox::read_state`].

use std::io;

use postcard::ser_flavors::Flavor;
use reference_core::shared;

use super::{Sandbox, Setup};
use crate::{chain::Chain, digest::Hashed};

/// A state is written in pieces of this size.
const PIECE_BYTES: usize = 256 * 1_024;

impl Sandbox {
    /// Writes the state, without who watches.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write_state(&self, out: &mut impl io::Write) -> io::Result<()> {
        shared::writing(|| self.write(out))
    }

    fn write(&self, out: &mut impl io::Write) -> io::Result<()> {
        let mut failed = None;
        let pieces = Pieces { out, piece: Vec::with_capacity(PIECE_BYTES), failed: &mut failed };
        // postcard says only that it could not write.
        let written = postcard::serialize_with_flavor(self, pieces);
        written.map_err(|error| failed.unwrap_or_else(|| io::Error::other(error)))
    }

    /// Reads what [`Sandbox::write_state`] of this program wrote; `None` if it is something else. Of the setup, what the
    /// host has of its own counts: the public address and the wallets that many share.
    pub fn read_state(state: &[u8], host: &Setup) -> Option<Sandbox> {
        let (mut sandbox, rest): (Sandbox, _) = shared::reading(|| postcard::take_from_bytes(state)).ok()?;
        let world = &mut sandbox.world;
        world.setup = Setup {
            public_url: host.public_url.clone(),
            wallet_cache: host.wallet_cache.clone(),
            ..world.setup.clone()
        };
        world.service.resume(&world.setup);
        world.chains.values_mut().for_each(Chain::index);
        rest.is_empty().then_some(sandbox)
    }

    /// Of the state: two worlds that answer the same have the same, whoever holds what with whom.
    pub fn state_digest(&self) -> [u8; 32] {
        let mut hashed = Hashed::new(io::sink());
        // It is never read, so each holder of a value may have a copy.
        self.write(&mut hashed).expect("a hash takes everything");
        hashed.finish().1
    }
}

/// The output of a state, in pieces.
struct Pieces<'a, W> {
    out: &'a mut W,
    piece: Vec<u8>,
    failed: &'a mut Option<io::Error>,
}

impl<W: io::Write> Pieces<'_, W> {
    fn hand_on(&mut self) -> postcard::Result<()> {
        let handed_on = self.out.write_all(&self.piece);
        self.piece.clear();
        handed_on.map_err(|error| {
            *self.failed = Some(error);
            postcard::Error::SerializeBufferFull
        })
    }
}

impl<W: io::Write> Flavor for Pieces<'_, W> {
    type Output = ();

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.piece.push(byte);
        if self.piece.len() < PIECE_BYTES { Ok(()) } else { self.hand_on() }
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() < PIECE_BYTES { Ok(()) } else { self.hand_on() }
    }

    fn finalize(mut self) -> postcard::Result<()> {
        self.hand_on()
    }
}
