import { type Static, Type as t } from "@sinclair/typebox"

/** What Amazon SNS posts, as far as it is read here. */
export const SnsEnvelope = t.Object({
  Type: t.String(),
  MessageId: t.String({ maxLength: 200 }),
  TopicArn: t.String({ maxLength: 500 }),
  Message: t.String(),
  Timestamp: t.String({ maxLength: 100 }),
  SignatureVersion: t.String({ maxLength: 10 }),
  Signature: t.String({ maxLength: 4096 }),
  SigningCertURL: t.String({ maxLength: 1000 }),
  Subject: t.Optional(t.Union([t.String(), t.Null()])),
  Token: t.Optional(t.String({ maxLength: 4096 })),
  SubscribeURL: t.Optional(t.String({ maxLength: 2000 })),
})

export const SNS_EXAMPLE = {
  Type: "Notification",
  MessageId: "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
  TopicArn: "arn:aws:sns:eu-west-1:123456789012:belfry",
  Message: '{"eventType":"Delivery","mail":{"messageId":"0100018c"}}',
  Timestamp: "2026-11-21T10:30:00.000Z",
  SignatureVersion: "1",
  Signature:
    "EXAMPLEpH+DcEwjAPg8O9mY8dReBSwksfg2S7WKQcikcNKWLQjwu6A4VbeS0QHVCkhRS7fUQvi2egU3N858fiTDN6bkkOxYDVrY0Ad8L10Hs3zH81mtnPk5uvvolIC1CXGu43obcgFxeL3khZl8IKvO61GWB6jI9b5+gLPoBc1Q=",
  SigningCertURL: "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-1.pem",
}

export type SnsEnvelope = Static<typeof SnsEnvelope>

type Field = keyof SnsEnvelope

const NOTIFICATION: Field[] = ["Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"]
const CONFIRMATION: Field[] = [
  ...(["Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"] as const),
]

/** The bytes that SNS signs: each field it has, name and value on lines of their own, sorted. */
export function signedText(envelope: SnsEnvelope): string {
  const fields = envelope.Type === "Notification" ? NOTIFICATION : CONFIRMATION
  return fields
    .filter((name) => typeof envelope[name] === "string")
    .map((name) => `${name}\n${envelope[name]}\n`)
    .join("")
}

/** Only SNS itself is asked for certificates and confirmations: no bucket, no other service. */
const HOST = /^sns\.[a-z0-9-]{3,30}\.amazonaws\.com(\.cn)?$/

/** The URL if SNS is behind it, over https on its usual port. */
export function snsUrl(text: string | undefined): URL | undefined {
  if (text === undefined || !URL.canParse(text)) return undefined
  const url = new URL(text)
  const plain = url.username === "" && url.password === "" && url.port === ""
  return url.protocol === "https:" && plain && HOST.test(url.hostname) ? url : undefined
}
