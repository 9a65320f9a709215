import { quoted } from "../curl"
import { CodeBlock } from "../parts/code-block"
import { Notice } from "../parts/notice"
import { RequestError } from "../request-error"
import { serverMode } from "../server-mode"

interface ObstacleProps {
  error: unknown
  /** For the commands that mend it. */
  sender_domain: string
}

/** What a person does about a refused release: the commands, ready to copy. */
export function ReleaseObstacle({ error, sender_domain }: ObstacleProps) {
  if (!(error instanceof RequestError)) return null
  if (error.details.reason === "no_provider") return <NoRelay />
  return error.code === "domain_not_verified" ? <NotVerified domain={sender_domain} /> : null
}

/** Neither the project nor the server delivers to anything but the mailbox. */
const NoRelay = () => (
  <Notice tone="warn">
    <p>
      {serverMode() === "up"
        ? "This server delivers to its mailbox alone. Start it with a relay; all other mail stays in the sandbox:"
        : "This project delivers to the mailbox alone. An admin adds a relay; all other mail stays in the sandbox:"}
    </p>
    <CodeBlock label="In a terminal" text={serverMode() === "up" ? RELAY_OF_UP : RELAY} />
    <p class="hint">
      <a href="/docs/guides/providers">All providers</a>
    </p>
  </Notice>
)

const RELAY = `belfry settings set sandbox=true
belfry providers set smtp --host smtp.example.com --username apikey --secret-stdin < relay-password`

const RELAY_OF_UP = `belfry settings set sandbox=true
BELFRY_SENDING_DOMAINS=example.com BELFRY_DELIVERY_PROVIDER=smtp \\
  BELFRY_PROVIDERS_SMTP_HOST=smtp.example.com BELFRY_PROVIDERS_SMTP_USERNAME=apikey \\
  BELFRY_PROVIDERS_SMTP_PASSWORD=secret belfry up    # in place of the one that runs`

const MAILBOX_DOMAIN = "mailbox.test"

/** Relays take mail from domains that belong to the sender. */
function NotVerified({ domain }: { domain: string }) {
  const own = domain === "" || domain === MAILBOX_DOMAIN ? "example.com" : domain
  const commands = [
    `belfry domains add ${quoted(own)}`,
    `belfry domains check ${quoted(own)} --watch`,
  ].join("\n")
  return (
    <Notice tone="warn">
      <p>
        {own === domain
          ? `The domain ${domain} is not verified, so no mail leaves under its name.`
          : "mailbox.test is for tests only. Write a mail from a domain of yours, and release that one."}
      </p>
      <CodeBlock label="Add and verify a domain" text={commands} />
      <CodeBlock
        label="Or allow it without a check, on your own machine"
        text={`BELFRY_SENDING_DOMAINS=${quoted(own)} belfry up`}
      />
      <p class="hint">
        <a href="/docs/guides/domains">What the records of a domain are for</a>
      </p>
    </Notice>
  )
}
