//! The complete state of a world as bytes, for hosts that store worlds.
//!
//! The format is derived from the types, in the order of their fields. Another version of the program would misread
//! the bytes, so stored states need the version that wrote them. Values that can be computed from the rest are omitted
//! and restored by [`Sandbox::read_state`].

use std::io;

use postcard::ser_flavors::Flavor;
use reference_core::shared;

use super::{Sandbox, Setup};
use crate::{chain::Chain, digest::HashingWriter};

/// The size of the chunks in which a state is written.
const CHUNK_BYTES: usize = 256 * 1_024;

impl Sandbox {
    /// Writes the state with the log, but without the other observers and the history.
    ///
    /// # Errors
    ///
    /// The errors of `out`.
    pub fn write_state(&self, out: &mut impl io::Write) -> io::Result<()> {
        shared::write_shared(|| self.write(out))
    }

    fn write(&self, out: &mut impl io::Write) -> io::Result<()> {
        let mut io_error = None;
        let writer = ChunkWriter { out, chunk: Vec::with_capacity(CHUNK_BYTES), error: &mut io_error };
        // postcard does not return the underlying error.
        let result = postcard::serialize_with_flavor(self, writer);
        result.map_err(|error| io_error.unwrap_or_else(|| io::Error::other(error)))
    }

    /// Reads a state written by [`Sandbox::write_state`]; `None` if it is invalid. The public URL and the shared
    /// wallets are those of `host`.
    pub fn read_state(state: &[u8], host: &Setup) -> Option<Sandbox> {
        let (mut sandbox, rest): (Sandbox, _) =
            shared::read_shared(|| postcard::take_from_bytes(state)).ok()?;
        let world = &mut sandbox.world;
        world.setup = Setup {
            public_url: host.public_url.clone(),
            wallet_cache: host.wallet_cache.clone(),
            ..world.setup.clone()
        };
        world.service.resume(&world.setup);
        world.chains.values_mut().for_each(Chain::rebuild_indexes);
        rest.is_empty().then_some(sandbox)
    }

    /// Stores the state and continues with the restored one, as a host does when it restarts. Observers stay.
    pub(crate) fn reload(&mut self) {
        let mut bytes = Vec::new();
        self.write_state(&mut bytes).expect("writing to memory never fails");
        let restored =
            Sandbox::read_state(&bytes, &self.world.setup.clone()).expect("a written state can be read");
        self.world = restored.world;
    }

    /// Returns the digest of the state. Equal states have the same digest, however their values are shared in memory.
    pub fn state_digest(&self) -> [u8; 32] {
        let mut writer = HashingWriter::new(io::sink());
        // The output is never read back, so shared values may be written several times.
        self.write(&mut writer).expect("writing to a hash never fails");
        writer.finish().1
    }
}

/// A writer that collects small writes into chunks.
struct ChunkWriter<'a, W> {
    out: &'a mut W,
    chunk: Vec<u8>,
    /// The error of `out`, if writing failed.
    error: &'a mut Option<io::Error>,
}

impl<W: io::Write> ChunkWriter<'_, W> {
    fn flush_chunk(&mut self) -> postcard::Result<()> {
        let result = self.out.write_all(&self.chunk);
        self.chunk.clear();
        result.map_err(|error| {
            *self.error = Some(error);
            postcard::Error::SerializeBufferFull
        })
    }
}

impl<W: io::Write> Flavor for ChunkWriter<'_, W> {
    type Output = ();

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.chunk.push(byte);
        if self.chunk.len() < CHUNK_BYTES { Ok(()) } else { self.flush_chunk() }
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.chunk.extend_from_slice(bytes);
        if self.chunk.len() < CHUNK_BYTES { Ok(()) } else { self.flush_chunk() }
    }

    fn finalize(mut self) -> postcard::Result<()> {
        self.flush_chunk()
    }
}
