import { expect, test } from "bun:test"
import { readDsn } from "../../src/lib/dsn"
import { bounceSubtype } from "../../src/lib/dsn-recipient"
import { STANDARD_DSNS } from "../fixtures/reports/dsn-standard"
import { TEXT_DSNS } from "../fixtures/reports/dsn-text"
import { seen } from "../fixtures/reports/mime"

test.each([...STANDARD_DSNS, ...TEXT_DSNS].map((one) => [one.name, one] as const))(
  "the failures of %s have the subtype that the label names",
  (_, { raw, envelope_from, recipients }) => {
    const read = readDsn(seen(raw, envelope_from))?.recipients ?? []
    const failed = read.filter(({ action }) => action === "failed")
    const wanted = recipients.filter(({ action }) => action === "failed")
    expect(failed.map(bounceSubtype)).toEqual(wanted.map(({ subtype }) => subtype ?? ""))
  },
)
