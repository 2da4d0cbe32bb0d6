//! A bare hyper server that sends prepared bytes for each path.
//!
//! `cargo xtask compare` measures the reference server against it. It checks neither API keys nor rate limits, and
//! compares paths with their queries as text. The prepared responses have the same heads and bodies as those of the
//! reference server; any other request gets an empty 404.
//!
//! `bare (METHOD PATH STATUS FILE)…`: prints the listening address, and serves until it is killed. Each group of four
//! arguments is one response; `PATH` includes the query, and `FILE` contains the body.

use std::{convert::Infallible, env, fs, process::ExitCode, sync::Arc};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::{Body, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// A prepared response to one method and path.
struct PreparedResponse {
    method: Method,
    /// The path with the query.
    path: String,
    status: StatusCode,
    body: Bytes,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match prepare(&arguments).and_then(serve) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

fn prepare(arguments: &[String]) -> Result<Vec<PreparedResponse>, String> {
    let responses = arguments.chunks(4).map(|group| {
        let [method, path, status, file] = group else {
            return Err("usage: bare (METHOD PATH STATUS FILE)…".to_owned());
        };
        Ok(PreparedResponse {
            method: method.parse().map_err(|_| format!("`{method}` is not a method"))?,
            path: path.clone(),
            status: status.parse().map_err(|_| format!("`{status}` is not a status"))?,
            body: fs::read(file).map_err(|error| format!("`{file}` can't be read: {error}"))?.into(),
        })
    });
    responses.collect()
}

#[tokio::main]
async fn serve(responses: Vec<PreparedResponse>) -> Result<(), String> {
    let listen_error = |error: std::io::Error| format!("can't listen: {error}");
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(listen_error)?;
    println!("{}", listener.local_addr().map_err(listen_error)?);
    let responses = Arc::new(responses);
    loop {
        let (stream, _) = listener.accept().await.map_err(listen_error)?;
        let _ = stream.set_nodelay(true);
        let responses = Arc::clone(&responses);
        let service = service_fn(move |request| {
            let responses = Arc::clone(&responses);
            async move { Ok::<_, Infallible>(respond(&responses, request).await) }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn respond(responses: &[PreparedResponse], request: Request<Incoming>) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    if !body.is_end_stream() {
        // The reference server also reads the body first.
        let _ = body.collect().await;
    }
    let path = head.uri.path_and_query().map_or("/", |target| target.as_str());
    let Some(prepared) =
        responses.iter().find(|response| response.path == path && response.method == head.method)
    else {
        let mut not_found = Response::new(Full::default());
        *not_found.status_mut() = StatusCode::NOT_FOUND;
        return not_found;
    };
    let mut response = Response::new(Full::new(prepared.body.clone()));
    *response.status_mut() = prepared.status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
