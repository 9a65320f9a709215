import { useMemo } from "preact/hooks"
import { requestOf } from "../../client/client"
import { Commands } from "../parts/commands"
import { REACHABLE } from "../parts/reachable"
import type { OpenMail } from "./mail-records"
import { textPieces } from "./text-links"

/** The text as programs without HTML show it. */
export const TextView = ({ mail: { id, text } }: { mail: OpenMail }) => (
  <>
    {text ? (
      <pre class="mail-text" {...REACHABLE}>
        <LinkedText text={text} />
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

/** Addresses open in a tab of their own, which learns nothing about the mail. */
function LinkedText({ text }: { text: string }) {
  const pieces = useMemo(() => textPieces(text), [text])
  return (
    <>
      {pieces.map((piece) =>
        piece.url === undefined ? (
          piece.text
        ) : (
          <a key={piece.start} href={piece.url} target="_blank" rel="noopener noreferrer">
            {piece.text}
          </a>
        ),
      )}
    </>
  )
}
