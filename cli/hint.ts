/** One word in the form that every shell takes. */
export const quoted = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`

/** ` --status bounced --limit 50`: options as they would be typed, with those left out not given. */
export function optionWords(options: Record<string, string | readonly string[] | undefined>) {
  return Object.entries(options)
    .flatMap(([name, value]) =>
      [value ?? []].flat().map((one) => ` --${dashed(name)} ${quoted(one)}`),
    )
    .join("")
}

/** `eventId` of commander is `--event-id` as typed. */
const dashed = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

/** A first email that is accepted as printed: the domain is verified wherever a mailbox runs. */
export const FIRST_EMAIL =
  "belfry emails send --to ann@mailbox.test --from me@mailbox.test --subject Hi --text hello"
