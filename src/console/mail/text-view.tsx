import { requestOf } from "../../client/client"
import { Commands } from "../parts/commands"
import { REACHABLE } from "../parts/reachable"
import type { OpenMail } from "./mail-records"

/** The text as programs without HTML show it. */
export const TextView = ({ mail: { id, text } }: { mail: OpenMail }) => (
  <>
    {text ? (
      <pre class="mail-text" {...REACHABLE}>
        {text}
      </pre>
    ) : (
      <p class="soft">This mail has no text.</p>
    )}
    <Commands
      belfry={`belfry mailbox get ${id} --json=text`}
      request={requestOf("GET /v1/mailbox/{mail_id}", { params: { mail_id: id } })}
    />
  </>
)
