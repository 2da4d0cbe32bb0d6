//! [`Page`]: a page of a browser, with the actions of a user.

use std::{path::Path, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::time::{Instant, interval};

use super::DevToolsConnection;

/// The timeout of all waits; long enough for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The interval at which conditions are polled.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The size of a window and its colour scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Viewport {
    /// The name in messages and of files.
    pub name: &'static str,
    /// The width in CSS pixels. A phone is emulated below 600.
    pub width: u32,
    /// The height in CSS pixels.
    pub height: u32,
    /// `light` or `dark`.
    pub scheme: &'static str,
}

impl Viewport {
    /// A desktop in light colours.
    pub const DESKTOP: Viewport =
        Viewport { name: "desktop-light", width: 1280, height: 900, scheme: "light" };
    /// A desktop in dark colours.
    pub const DESKTOP_DARK: Viewport = Viewport { name: "desktop-dark", scheme: "dark", ..Viewport::DESKTOP };
    /// A narrow phone in light colours.
    pub const PHONE: Viewport = Viewport { name: "phone-light", width: 375, height: 800, scheme: "light" };
    /// A narrow phone in dark colours.
    pub const PHONE_DARK: Viewport = Viewport { name: "phone-dark", scheme: "dark", ..Viewport::PHONE };
    /// All of the above.
    pub const ALL: [Viewport; 4] =
        [Viewport::DESKTOP, Viewport::DESKTOP_DARK, Viewport::PHONE, Viewport::PHONE_DARK];
}

/// A page of a browser.
#[derive(Debug)]
pub struct Page {
    connection: Arc<DevToolsConnection>,
    session: String,
}

impl Page {
    pub(super) async fn new(connection: Arc<DevToolsConnection>, session: String) -> Page {
        let page = Page { connection, session };
        for method in ["Page.enable", "Runtime.enable", "Log.enable"] {
            page.command(method, json!({})).await;
        }
        // Pages of other tests are open too, and only one window can have the focus.
        page.command("Emulation.setFocusEmulationEnabled", json!({ "enabled": true })).await;
        page.set_viewport(Viewport::DESKTOP).await;
        page
    }

    async fn command(&self, method: &str, params: Value) -> Value {
        self.connection.command(Some(&self.session), method, params).await
    }

    /// Changes width, height and colour scheme. Switches animations off.
    pub async fn set_viewport(&self, viewport: Viewport) {
        let size = json!({
            "width": viewport.width,
            "height": viewport.height,
            "deviceScaleFactor": 1,
            "mobile": viewport.width < 600,
        });
        self.command("Emulation.setDeviceMetricsOverride", size).await;
        let features = json!([
            { "name": "prefers-color-scheme", "value": viewport.scheme },
            { "name": "prefers-reduced-motion", "value": "reduce" },
        ]);
        self.command("Emulation.setEmulatedMedia", json!({ "features": features })).await;
    }

    /// Switches to print styles.
    pub async fn use_print_styles(&self) {
        self.command("Emulation.setEmulatedMedia", json!({ "media": "print" })).await;
    }

    /// Disables scripts of pages that are opened afterwards.
    pub async fn disable_scripts(&self) {
        self.command("Emulation.setScriptExecutionDisabled", json!({ "value": true })).await;
    }

    /// Opens a URL and waits until it is loaded.
    pub async fn open(&self, url: &str) {
        let result = self.command("Page.navigate", json!({ "url": url })).await;
        assert!(result["errorText"].is_null(), "{url}: {}", result["errorText"]);
        let is_loaded = format!(
            "document.readyState === 'complete' && location.href !== 'about:blank' || {}",
            url == "about:blank"
        );
        self.wait_until(&is_loaded, || format!("{url} did not finish loading")).await;
    }

    /// Runs a script and returns its result, after awaiting a promise.
    pub async fn eval(&self, script: &str) -> Value {
        self.try_eval(script).await.unwrap_or_else(|error| panic!("{script}\n{error}"))
    }

    async fn try_eval(&self, script: &str) -> Result<Value, String> {
        let params = json!({ "expression": script, "awaitPromise": true, "returnByValue": true });
        let mut response =
            self.connection.try_command(Some(&self.session), "Runtime.evaluate", params).await?;
        match response["exceptionDetails"]["exception"]["description"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(response["result"]["value"].take()),
        }
    }

    /// Polls a condition in JavaScript until it holds. `message` describes a timeout.
    pub async fn wait_until(&self, condition: &str, message: impl FnOnce() -> String) {
        let deadline = Instant::now() + TIMEOUT;
        let script =
            format!("(() => {{ try {{ return Boolean({condition}); }} catch {{ return false; }} }})()");
        let mut polls = interval(POLL_INTERVAL);
        loop {
            polls.tick().await;
            // A page that is replaced during the script returns an error: retry on the next page.
            if self.try_eval(&script).await == Ok(json!(true)) {
                return;
            }
            if Instant::now() > deadline {
                let page_text = self.try_eval("document.body.innerText").await.unwrap_or_default();
                panic!("{}; the page shows:\n{}", message(), page_text.as_str().unwrap_or_default());
            }
        }
    }

    /// Waits until the page has an element that matches the selector.
    pub async fn wait_for(&self, selector: &str) {
        let condition = format!("document.querySelector({})", json!(selector));
        self.wait_until(&condition, || format!("{selector} did not appear")).await;
    }

    /// Waits until the text of an element contains `text`.
    pub async fn wait_for_text(&self, selector: &str, text: &str) {
        let condition = format!("{}.includes({})", visible_text_script(selector), json!(text));
        self.wait_until(&condition, || format!("{selector} did not show {text:?}")).await;
    }

    /// Waits until the page's URL contains `part` and the page is loaded.
    pub async fn wait_for_url(&self, part: &str) {
        let condition =
            format!("location.href.includes({}) && document.readyState === 'complete'", json!(part));
        self.wait_until(&condition, || format!("the page did not navigate to {part}")).await;
    }

    /// Returns the URL of the page.
    pub async fn url(&self) -> String {
        self.eval("location.href").await.as_str().expect("`location.href` is a string").to_owned()
    }

    /// Waits for an element and returns its visible text.
    pub async fn text(&self, selector: &str) -> String {
        self.wait_for(selector).await;
        let text = self.eval(&visible_text_script(selector)).await;
        text.as_str().expect("the script returns a string").to_owned()
    }

    /// Returns the number of elements that match the selector.
    pub async fn count(&self, selector: &str) -> u64 {
        self.eval(&format!("document.querySelectorAll({}).length", json!(selector)))
            .await
            .as_u64()
            .expect("the script returns a number")
    }

    /// Returns `true` if an element exists and is visible.
    pub async fn is_visible(&self, selector: &str) -> bool {
        let script = format!("Boolean(document.querySelector({})?.checkVisibility())", json!(selector));
        self.eval(&script).await == json!(true)
    }

    /// Clicks an element as soon as it is on the page and no other element covers its centre. Panics after a timeout.
    ///
    /// Check and click are one script, so that no navigation happens in between.
    pub async fn click(&self, selector: &str) {
        let click_if_uncovered = format!(
            "(() => {{
               const element = document.querySelector({});
               element.scrollIntoView({{ block: 'center', behavior: 'instant' }});
               const {{ x, y, width, height }} = element.getBoundingClientRect();
               const hit = document.elementFromPoint(x + width / 2, y + height / 2);
               if (document.readyState === 'loading' || !hit || !(element.contains(hit) || hit.contains(element))) return false;
               element.focus();
               element.click();
               return true;
             }})()",
            json!(selector)
        );
        self.wait_until(&click_if_uncovered, || {
            format!("{selector} can't be clicked: it is covered or not on the page")
        })
        .await;
    }

    /// Clicks an element that opens another page, and waits until the other page is loaded.
    pub async fn click_through(&self, selector: &str) {
        let time_origin = self.eval("performance.timeOrigin").await;
        self.click(selector).await;
        let is_loaded =
            format!("performance.timeOrigin !== {time_origin} && document.readyState === 'complete'");
        self.wait_until(&is_loaded, || format!("{selector} did not open a page")).await;
    }

    /// Waits for a field and replaces its content by typed text.
    pub async fn fill(&self, selector: &str, text: &str) {
        let select_content = format!(
            "(() => {{ const field = document.querySelector({}); field.focus(); field.select(); return true; }})()",
            json!(selector)
        );
        self.wait_until(&select_content, || format!("{selector} did not appear")).await;
        self.command("Input.insertText", json!({ "text": text })).await;
    }

    /// Presses and releases a key, such as `Tab` or `Enter`.
    pub async fn press(&self, key: &str) {
        let (key_code, text) = match key {
            "Tab" => (9, ""),
            "Enter" => (13, "\r"),
            " " => (32, " "),
            "Escape" => (27, ""),
            "End" => (35, ""),
            "Home" => (36, ""),
            "ArrowLeft" => (37, ""),
            "ArrowUp" => (38, ""),
            "ArrowRight" => (39, ""),
            "ArrowDown" => (40, ""),
            other => panic!("the key {other} has no code here; add it"),
        };
        for kind in ["keyDown", "keyUp"] {
            let event = json!({
                "type": kind, "key": key, "windowsVirtualKeyCode": key_code, "code": key, "text": text,
            });
            self.command("Input.dispatchKeyEvent", event).await;
        }
    }

    /// Returns errors of scripts, and resources that the browser refused to load or run on this page or earlier ones.
    pub fn errors(&self) -> Vec<String> {
        let events = self.connection.events(&self.session);
        events
            .iter()
            .filter_map(|message| {
                let params = &message["params"];
                match message["method"].as_str()? {
                    "Runtime.exceptionThrown" => {
                        Some(params["exceptionDetails"]["exception"]["description"].to_string())
                    }
                    // The browser also logs a response of 404 as an error, which is not an error of the page.
                    "Log.entryAdded"
                        if params["entry"]["level"] == "error" && params["entry"]["source"] != "network" =>
                    {
                        Some(params["entry"]["text"].to_string())
                    }
                    _ => None,
                }
            })
            .collect()
    }

    /// Asserts that the page is not wider than the window, so that it does not scroll sideways.
    pub async fn assert_fits(&self) {
        let overflow = self.eval(
            "(() => {
               const width = document.documentElement.clientWidth;
               if (document.documentElement.scrollWidth <= width) return '';
               const wide = [...document.querySelectorAll('body *')].filter((element) => element.getBoundingClientRect().right > width + 1);
               return wide.slice(0, 5).map((element) => element.tagName + '.' + element.className).join(', ') || 'an unknown element';
             })()",
        )
        .await;
        assert_eq!(overflow, json!(""), "{} is wider than its window", self.url().await);
    }

    /// Takes a screenshot of the whole page.
    pub async fn screenshot(&self, path: &Path) {
        let params = json!({ "format": "png", "captureBeyondViewport": true });
        let picture = self.command("Page.captureScreenshot", params).await;
        let bytes = decode_base64(picture["data"].as_str().expect("the browser returns a screenshot"));
        std::fs::create_dir_all(path.parent().expect("the file has a directory"))
            .expect("the directory can be created");
        std::fs::write(path, bytes).expect("the screenshot can be written");
    }
}

/// Returns a script for the visible text of an element, with non-breaking spaces replaced.
fn visible_text_script(selector: &str) -> String {
    format!("document.querySelector({})?.innerText.replace(/[\\u00a0\\u202f]/g, ' ')", json!(selector))
}

/// Decodes Base64, the encoding of the browser's screenshots.
fn decode_base64(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => Some(u32::from(byte - b'A')),
        b'a'..=b'z' => Some(u32::from(byte - b'a') + 26),
        b'0'..=b'9' => Some(u32::from(byte - b'0') + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let values: Vec<u32> = text.bytes().filter_map(value).collect();
    let mut bytes = Vec::with_capacity(values.len() * 3 / 4);
    for group in values.chunks(4) {
        let bits = (0..4).fold(0, |bits, n| bits << 6 | group.get(n).copied().unwrap_or(0));
        let decoded = [(bits >> 16) as u8, (bits >> 8) as u8, bits as u8];
        bytes.extend_from_slice(&decoded[..(group.len() * 3 / 4).min(3)]);
    }
    bytes
}
