import { createHmac } from "node:crypto"
import { unsubscribeLinksAt } from "../../src/consents/unsubscribe-links"

/** For parts that are wired by hand: links of a server of their own. */
export const testLinks = unsubscribeLinksAt({
  secrets: { mac: (purpose, text) => createHmac("sha256", purpose).update(text).digest() },
  base_url: () => "https://belfry.test",
  mail_host: "mx.belfry.test",
})
