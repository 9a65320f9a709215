import { requestOf } from "../../client/client"
import { ActionDialog } from "../parts/action-dialog"
import { call } from "../transport"
import type { OpenMail } from "./mail-records"

interface DeleteDialogProps {
  mail: OpenMail
  onClose: () => void
  onDone: () => void
}

/** Deletes one mail. */
export const DeleteDialog = ({ mail: { id, subject }, onClose, onDone }: DeleteDialogProps) => (
  <ActionDialog
    title="Delete this mail?"
    action="Delete"
    look="danger"
    said="the mail was deleted"
    run={() => call("DELETE /v1/mailbox/{mail_id}", { params: { mail_id: id } })}
    belfry={`belfry mailbox rm ${id} --yes`}
    request={requestOf("DELETE /v1/mailbox/{mail_id}", { params: { mail_id: id } })}
    onClose={onClose}
    onDone={onDone}
  >
    <p>
      “<bdi>{subject}</bdi>” leaves the mailbox for good. The message and its events stay.
    </p>
  </ActionDialog>
)

interface DeleteAllProps {
  onClose: () => void
  onDone: () => void
}

/** Empties the mailbox of the project. */
export const DeleteAllDialog = ({ onClose, onDone }: DeleteAllProps) => (
  <ActionDialog
    title="Delete all mail of the mailbox?"
    action="Delete all"
    look="danger"
    said="the mailbox is empty"
    run={() => call("DELETE /v1/mailbox")}
    belfry="belfry mailbox clear --yes"
    request={requestOf("DELETE /v1/mailbox")}
    onClose={onClose}
    onDone={onDone}
  >
    <p>All mail of this project leaves the mailbox for good. Messages and their events stay.</p>
  </ActionDialog>
)
