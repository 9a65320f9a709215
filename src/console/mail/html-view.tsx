import { useRef, useState } from "preact/hooks"
import { requestOf } from "../../client/client"
import { Button } from "../parts/button"
import { Commands } from "../parts/commands"
import { useMedia } from "../use-media"
import { useObservable } from "../use-observable"
import { usePoll } from "../use-poll"
import { useWidth } from "../use-width"
import type { OpenMail } from "./mail-records"
import { remoteParts, remoteText, withoutOwnPixel } from "./remote-parts"
import { changeView, view_choice, type WidthName } from "./view-choice"

const WIDTHS = [
  { name: "phone", text: "Phone", pixels: 390 },
  { name: "tablet", text: "Tablet", pixels: 768 },
  { name: "desktop", text: "Desktop", pixels: 1200 },
  { name: "fit", text: "Fit", pixels: undefined },
] as const satisfies { name: WidthName; text: string; pixels: number | undefined }[]

/** The address of the HTML is valid for ten minutes; a mail that stays open gets a new one before. */
const RENEWAL_MILLISECONDS = 9 * 60_000

/**
 * The HTML in a frame: no script, no form, no network, an origin of its own. Only a link that somebody presses
 * opens, in a tab of its own. The HTML is shown at the width of a device, and as programs with dark colors ask for it.
 */
export function HtmlView({ mail, again }: { mail: OpenMail; again: () => Promise<void> }) {
  const { width: chosen, is_dark } = useObservable(view_choice)
  const is_narrow = useMedia("(max-width: 40rem)") // there all of the page is a phone already
  const width = is_narrow && chosen === "phone" ? "fit" : chosen
  const place = useRef<HTMLDivElement>(null)
  const place_width = useWidth(place)
  const [opened_at] = useState(() => performance.now())
  usePoll(RENEWAL_MILLISECONDS, () => {
    if (performance.now() - opened_at > RENEWAL_MILLISECONDS / 2) void again()
  })
  const { id, html_url } = mail
  if (html_url === null) return <p class="soft">This mail has no HTML.</p>
  const html = mail.html ?? ""
  const missing = remoteText(remoteParts(mail.email_id === null ? html : withoutOwnPixel(html)))
  const pixels = WIDTHS.find(({ name }) => name === width)?.pixels
  // What is wider than the page is shown smaller, and whole.
  const scale = Math.min(1, pixels && place_width ? place_width / pixels : 1)
  return (
    <>
      <fieldset class="buttons">
        <legend class="unseen">Width and colors of the preview</legend>
        {WIDTHS.filter(({ name }) => name !== "phone" || !is_narrow).map(({ name, text }) => (
          <Button key={name} pressed={name === width} onClick={() => changeView({ width: name })}>
            {text}
          </Button>
        ))}
        <Button pressed={is_dark} onClick={() => changeView({ is_dark: !is_dark })}>
          Dark
        </Button>
        {scale < 1 && <span class="soft">at {Math.floor(scale * 100)} %</span>}
      </fieldset>
      {missing && <p class="hint">{missing}</p>}
      <div class={is_dark ? "preview dark" : "preview"} ref={place}>
        <iframe
          title="HTML of the mail"
          sandbox="allow-popups allow-popups-to-escape-sandbox"
          referrerpolicy="no-referrer"
          src={`${html_url}?scheme=${is_dark ? "dark" : "light"}`}
          style={{ width: pixels === undefined ? "100%" : `${pixels}px`, zoom: scale }}
        />
      </div>
      <Commands
        belfry={`belfry mailbox get ${id} --json=html`}
        request={requestOf("GET /v1/mailbox/{mail_id}", { params: { mail_id: id } })}
      />
    </>
  )
}
