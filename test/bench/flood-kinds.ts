const MEBIBYTES = 30
const MEBIBYTE = 1_048_576

const mail = { from: "shop@bench.test", to: "user@mailbox.test", subject: "Long" }

/** Bodies of 30 MiB that somebody could send to hurt others. */
export const FLOODS = {
  lists: () => Buffer.from(`[${"[],".repeat((MEBIBYTES * MEBIBYTE) / 3)}[]]`),
  text: () => Buffer.from(JSON.stringify([{ ...mail, text: "x".repeat(MEBIBYTES * MEBIBYTE) }])),
} satisfies Record<string, () => Uint8Array>

export type FloodKind = keyof typeof FLOODS
