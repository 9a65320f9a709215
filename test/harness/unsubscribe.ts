import { createHmac } from "node:crypto"
import { unsubscribeLinksAt } from "../../src/consents/unsubscribe-links"

/** For parts that are wired by hand: links of a server of their own. */
export const testLinks = unsubscribeLinksAt({
  secrets: { mac: (purpose, text) => createHmac("sha256", purpose).update(text).digest() },
  mail_host: "mx.belfry.test",
})

/** The public address of such a server. */
export const testAddress = async () => "https://belfry.test"
