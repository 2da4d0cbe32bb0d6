//! [`Asset`]: style sheets, scripts and images that are part of the binary. Their names contain a digest of their
//! content, so that browsers may cache them forever.

use std::sync::OnceLock;

use bytes::Bytes;
use http::{HeaderValue, StatusCode, header::CACHE_CONTROL};
use sha2::{Digest, Sha256};

use crate::response::{self, HttpResponse};

/// The number of bytes of the digest in a name.
const DIGEST_BYTES: usize = 6;
/// The cache policy: the content of a name never changes.
pub(super) const CACHE_FOREVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

/// The style sheet of all pages.
pub(crate) static FRAME_CSS: Asset = Asset::css("frame", include_str!("../../templates/frame.css"));
/// The script of all pages: the clock, live updates, copying.
pub(crate) static FRAME_JS: Asset = Asset::js("frame", include_str!("../../templates/frame.js"));
/// The favicon.
pub(crate) static ICON: Asset = Asset::svg("icon", include_str!("../../templates/icon.svg"));

/// A static file of the pages.
pub(crate) struct Asset {
    stem: &'static str,
    extension: &'static str,
    content_type: &'static str,
    content: &'static str,
    /// The name, computed on first use.
    file_name: OnceLock<String>,
}

impl Asset {
    /// Creates a style sheet.
    pub(crate) const fn css(stem: &'static str, content: &'static str) -> Asset {
        Asset {
            stem,
            extension: "css",
            content_type: "text/css; charset=utf-8",
            content,
            file_name: OnceLock::new(),
        }
    }

    /// Creates a script.
    pub(crate) const fn js(stem: &'static str, content: &'static str) -> Asset {
        let content_type = "text/javascript; charset=utf-8";
        Asset { stem, extension: "js", content_type, content, file_name: OnceLock::new() }
    }

    /// Creates an SVG image.
    pub(crate) const fn svg(stem: &'static str, content: &'static str) -> Asset {
        Asset { stem, extension: "svg", content_type: "image/svg+xml", content, file_name: OnceLock::new() }
    }

    /// Returns the name of the file: `frame-0123456789ab.css`.
    pub(crate) fn file_name(&self) -> &str {
        self.file_name.get_or_init(|| {
            let digest = Sha256::digest(self.content.as_bytes());
            format!("{}-{}.{}", self.stem, hex::encode(&digest[..DIGEST_BYTES]), self.extension)
        })
    }

    /// Returns the response with the file.
    pub(super) fn response(&self) -> HttpResponse {
        let content_type = HeaderValue::from_static(self.content_type);
        let mut response = response::with_media_type(
            StatusCode::OK,
            content_type,
            Bytes::from_static(self.content.as_bytes()),
        );
        response.headers_mut().insert(CACHE_CONTROL, CACHE_FOREVER);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_file_depends_on_its_content() {
        let (one, other) = (Asset::css("a", "x"), Asset::css("a", "y"));
        assert_eq!(one.file_name(), "a-2d711642b726.css");
        assert_ne!(one.file_name(), other.file_name());
    }
}
