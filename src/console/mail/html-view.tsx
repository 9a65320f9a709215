import { useState } from "preact/hooks"
import { requestOf } from "../../client/client"
import { Button } from "../parts/button"
import { Commands } from "../parts/commands"
import { useMedia } from "../use-media"
import { usePoll } from "../use-poll"
import type { OpenMail } from "./mail-records"
import { remoteParts, remoteText } from "./remote-parts"

const WIDTHS = [
  { name: "phone", text: "Phone", pixels: 390 },
  { name: "tablet", text: "Tablet", pixels: 768 },
  { name: "desktop", text: "Desktop", pixels: 1200 },
  { name: "fit", text: "Fit", pixels: undefined },
] as const

type WidthName = (typeof WIDTHS)[number]["name"]

/** The address of the HTML is valid for ten minutes; a mail that stays open gets a new one before. */
const RENEWAL_MILLISECONDS = 9 * 60_000

/**
 * The HTML in a frame without any right: no script, no form, no network, an origin of its own. It is shown
 * at the width of a device, and as programs with dark colors ask for it.
 */
export function HtmlView({ mail, again }: { mail: OpenMail; again: () => Promise<void> }) {
  const [width, setWidth] = useState<WidthName>("fit")
  const is_narrow = useMedia("(max-width: 40rem)") // there it is a phone already
  const [is_dark, setDark] = useState(false)
  const [opened_at] = useState(() => performance.now())
  usePoll(RENEWAL_MILLISECONDS, () => {
    if (performance.now() - opened_at > RENEWAL_MILLISECONDS / 2) void again()
  })
  const { id, html_url } = mail
  if (html_url === null) return <p class="soft">This mail has no HTML.</p>
  const missing = remoteText(remoteParts(mail.html ?? ""))
  const pixels = WIDTHS.find(({ name }) => name === width)?.pixels
  return (
    <>
      <fieldset class="buttons">
        <legend class="unseen">Width and colors of the preview</legend>
        {!is_narrow &&
          WIDTHS.map(({ name, text }) => (
            <Button key={name} pressed={name === width} onClick={() => setWidth(name)}>
              {text}
            </Button>
          ))}
        <Button pressed={is_dark} onClick={() => setDark(!is_dark)}>
          Dark
        </Button>
      </fieldset>
      {missing && <p class="hint">{missing}</p>}
      <div class={is_dark ? "preview dark" : "preview"}>
        <iframe
          title="HTML of the mail"
          sandbox=""
          referrerpolicy="no-referrer"
          src={`${html_url}?scheme=${is_dark ? "dark" : "light"}`}
          style={{ width: is_narrow || pixels === undefined ? "100%" : `${pixels}px` }}
        />
      </div>
      <Commands
        belfry={`belfry mailbox get ${id} --json=html`}
        request={requestOf("GET /v1/mailbox/{mail_id}", { params: { mail_id: id } })}
      />
    </>
  )
}
