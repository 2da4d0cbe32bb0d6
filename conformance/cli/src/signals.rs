//! Handling of Ctrl-C and SIGTERM.

use std::{
    process,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use conformance::Interrupt;
use tokio::{
    runtime::{Builder, Runtime},
    signal::unix::{Signal, SignalKind, signal},
};

use crate::Failure;

/// The exit code of a command that a signal ended early.
pub(crate) const INTERRUPTED: u8 = 130;

/// The signals that stop the program.
pub(crate) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    /// Starts catching the signals. Requires a Tokio runtime.
    pub(crate) fn catch() -> Result<StopSignals, Failure> {
        let to_failure = |error| Failure::machine(format!("cannot catch signals: {error}"));
        Ok(StopSignals {
            interrupt: signal(SignalKind::interrupt()).map_err(to_failure)?,
            terminate: signal(SignalKind::terminate()).map_err(to_failure)?,
        })
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Returns an interrupt for a run, raised by the first signal. The second signal exits the program.
pub(crate) fn interrupt(runtime: &Runtime) -> Result<Interrupt, Failure> {
    let (interrupt, interrupt_sender) = Interrupt::new();
    let mut signals = runtime.block_on(async { StopSignals::catch() })?;
    runtime.spawn(async move {
        signals.next().await;
        // Fails if the run has finished and dropped the receiver.
        let _ = interrupt_sender.send(true);
        signals.next().await;
        process::exit(i32::from(INTERRUPTED));
    });
    Ok(interrupt)
}

/// Returns a flag that the first signal sets, for work that polls it. The second signal exits the program.
pub(crate) fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    let flag_to_set = Arc::clone(&flag);
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::machine(format!("cannot start the async runtime: {error}")))?;
    let mut signals = runtime.block_on(async { StopSignals::catch() })?;
    thread::spawn(move || {
        runtime.block_on(async {
            signals.next().await;
            flag_to_set.store(true, Ordering::Relaxed);
            signals.next().await;
            process::exit(i32::from(INTERRUPTED));
        });
    });
    Ok(flag)
}
