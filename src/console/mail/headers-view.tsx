import { requestOf } from "../../client/client"
import { Badge } from "../parts/badge"
import { Commands } from "../parts/commands"
import { explainHeaders, type SenderFact, senderFacts } from "./explain-headers"
import type { OpenMail } from "./mail-records"

const TONES = { good: "good", warn: "look at it", plain: "fact" }

/** First what the headers say of the sender, then each field with its meaning. */
export const HeadersView = ({ mail, mail: { id, headers } }: { mail: OpenMail }) => (
  <>
    <ul class="facts-list">
      {senderFacts(mail).map((fact) => (
        <Fact key={`${fact.name} ${fact.text}`} fact={fact} />
      ))}
    </ul>
    <h3>All header fields</h3>
    <dl class="headers">
      {explainHeaders(headers).map(({ name, value, note }, at) => (
        <div class="pair" key={`${at} ${name}`}>
          <dt>
            <code>{name}</code>
          </dt>
          <dd>
            <bdi class="value">{value}</bdi>
            {note && <p class="hint">{note}</p>}
          </dd>
        </div>
      ))}
    </dl>
    <Commands
      belfry={`belfry mailbox get ${id} --json=headers`}
      request={requestOf("GET /v1/mailbox/{mail_id}", { params: { mail_id: id } })}
    />
  </>
)

const Fact = ({ fact: { name, text, tone } }: { fact: SenderFact }) => (
  <li>
    <b>{name}</b> <Badge tone={tone}>{TONES[tone]}</Badge>
    <br />
    <bdi>{text}</bdi>
  </li>
)
