//! Commands of the account owner about objects of a book.

use super::{Book, BookContext};
use crate::{
    command::{BookCommand, CommandResult},
    error::ApiError,
};

impl Book {
    /// Executes a command of the account owner.
    pub(crate) fn on_command(
        &mut self,
        context: &BookContext<'_>,
        command: BookCommand,
    ) -> Result<CommandResult, ApiError> {
        match command {
            BookCommand::AddEndpoint { url, events } => {
                return self.add_endpoint(context, &url, events).map(CommandResult::Endpoint);
            }
            BookCommand::ChangeEndpoint { id, url, events, enabled } => {
                let no = self.find_endpoint(id)?;
                self.change_endpoint(no, url.as_deref(), events, enabled)?;
                return Ok(CommandResult::Endpoint(no));
            }
            BookCommand::RotateSecret(id) => {
                let no = self.find_endpoint(id)?;
                self.rotate_secret(no);
                return Ok(CommandResult::Endpoint(no));
            }
            BookCommand::SendTest(id) => {
                let no = self.find_endpoint(id)?;
                return self.send_test(context, no).map(CommandResult::Delivery);
            }
            BookCommand::Resend(id) => {
                self.resend(context, id)?;
                return Ok(CommandResult::Delivery(id));
            }
            BookCommand::RemoveEndpoint(id) => {
                let no = self.find_endpoint(id)?;
                self.remove_endpoint(no);
            }
            BookCommand::RemoveWallet(asset) => self.remove_wallet(asset)?,
            BookCommand::AcceptLate { charge, txid } => {
                let no = self.find_charge(charge)?;
                self.accept_late(context, no, txid.as_deref())?;
            }
            BookCommand::CancelCharge(code) => {
                let no = self.find_charge(code)?;
                self.cancel_charge(context, no, Some("dashboard"))?;
            }
            BookCommand::SendInvoice(code) => {
                let no = self.find_invoice(code)?;
                self.send_invoice(context, no)?;
            }
            BookCommand::VoidInvoice(code) => {
                let no = self.find_invoice(code)?;
                self.void_invoice(context, no)?;
            }
        }
        Ok(CommandResult::Nothing)
    }
}
