//! SHA-256 digests of strings and bytes, to compare runs.

use std::io;

use sha2::{Digest as _, Sha256};

/// Returns `sha256:` and the hash in lower-case hex.
pub fn digest(text: &str) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(text.as_bytes())))
}

/// A writer that also hashes the bytes written.
pub struct HashingWriter<W> {
    out: W,
    hash: Sha256,
}

impl<W: io::Write> HashingWriter<W> {
    /// Creates a writer that passes all bytes on to `out`.
    pub fn new(out: W) -> HashingWriter<W> {
        HashingWriter { out, hash: Sha256::new() }
    }

    /// Returns the writer and the SHA-256 of all written bytes.
    pub fn finish(self) -> (W, [u8; 32]) {
        (self.out, self.hash.finalize().into())
    }
}

impl<W: io::Write> io::Write for HashingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_sha_256() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(digest(""), empty);
    }
}
