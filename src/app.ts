import { Elysia } from "elysia"
import { aiUsageRoutes } from "./ai/ai-usage-routes"
import { type AiParts, aiRoutes } from "./ai/routes"
import { auditRoutes } from "./audit-log/routes"
import type { AuthParts } from "./auth/auth-parts"
import type { AppCredentials } from "./auth/credentials"
import { authRoutes } from "./auth/routes"
import { PROVIDERS, PUBLISH_KITS } from "./channels"
import { consentRoutes } from "./consents/routes"
import type { Workers } from "./core/workers"
import type { DeviceFates } from "./devices/device-fates"
import { deviceRoutes } from "./devices/routes"
import { type DomainParts, domainRoutes } from "./domains/routes"
import { checkRoutes } from "./emails/check-routes"
import { type EmailParts, emailRoutes } from "./emails/routes"
import { eventRoutes, type StreamParts, streamRoutes } from "./events/routes"
import { healthRoutes } from "./http/health-routes"
import { mountRoutes, type RequestHandlerOptions } from "./http/request-handler"
import type { AnyRoute } from "./http/route"
import type { ServerHealth } from "./http/server-health"
import { apiKeyRoutes } from "./identity/api-key-routes"
import { credentialRoutes } from "./identity/credential-routes"
import { pageSessionRoutes } from "./identity/page-session-routes"
import type { PageSessionParts } from "./identity/page-sessions"
import { type SessionParts, sessionRoutes } from "./identity/session-routes"
import type { Sessions } from "./identity/sessions"
import { type UserParts, userRoutes } from "./identity/user-routes"
import { type InboundParts, inboundEmailRoutes } from "./inbound/routes"
import type { InboxSocketParts } from "./inbox/inbox-socket"
import type { InboxTokens } from "./inbox/inbox-tokens"
import { type InboxParts, inboxRoutes } from "./inbox/routes"
import { inboxSocketRoutes } from "./inbox/socket-routes"
import { subscriberInboxRoutes } from "./inbox/subscriber-routes"
import { inboxTokenRoutes } from "./inbox/token-routes"
import { longJobRoutes, type QueueControlParts, queueControlRoutes } from "./jobs/routes"
import { byChannel } from "./lib/preferences"
import { type MailboxParts, mailboxRoutes } from "./mailbox/routes"
import { scheduledRoutes } from "./messages/scheduled-routes"
import { type BackupRouteParts, backupRoutes } from "./operations/backup/backup-routes"
import { type DoctorRouteParts, doctorRoutes } from "./operations/doctor-routes"
import { subscriberDataRoutes } from "./operations/subscriber-data-routes"
import { type ConsoleParts, consoleRoutes } from "./pages/console-routes"
import { linkRoutes } from "./pages/link-routes"
import { docsRoutes, pageRoutes } from "./pages/routes"
import { scriptRoutes } from "./pages/script-routes"
import { absentPage } from "./pages/small-page"
import { unsubscribeRoutes } from "./pages/unsubscribe-routes"
import { type ProviderParts, providerRoutes } from "./providers/routes"
import { ackRoutes } from "./push/ack-routes"
import { pushConfigRoutes } from "./push/push-config-routes"
import { type PushParts, pushRoutes } from "./push/routes"
import { queueRoutes } from "./queue/routes"
import { reputationRoutes } from "./reputation/routes"
import type { RequestLog } from "./request-log/request-log"
import { requestLogRoutes } from "./request-log/routes"
import { keySetRoutes } from "./signing-keys/routes"
import { type SmsParts, smsRoutes } from "./sms/routes"
import { categoryRoutes } from "./subscribers/category-routes"
import { preferenceRoutes } from "./subscribers/preference-routes"
import { subscriberRoutes } from "./subscribers/routes"
import { suppressionRoutes } from "./suppressions/routes"
import { type TemplateRenderParts, templateRenderRoutes } from "./templates/render-routes"
import { type TemplateParts, templateRoutes } from "./templates/routes"
import { accountRoutes } from "./tenancy/account-routes"
import { type InvitationParts, invitationRoutes } from "./tenancy/invitation-routes"
import { memberRoutes } from "./tenancy/member-routes"
import { projectRoutes } from "./tenancy/project-routes"
import { settingsRoutes } from "./tenancy/settings-routes"
import type { SetupParts } from "./tenancy/setup"
import { setupRoutes } from "./tenancy/setup-routes"
import { usageRoutes } from "./tenancy/usage-routes"
import { type PublishParts, publishRoutes, topicRoutes } from "./topics/routes"
import type { Hits } from "./tracking/hits"
import { type TrackingParts, trackingRoutes } from "./tracking/routes"
import { type WebhookRouteParts, webhookRoutes } from "./webhooks/routes"

export interface AppParts
  extends AiParts,
    BackupRouteParts,
    ConsoleParts,
    DomainParts,
    EmailParts,
    InboundParts,
    Omit<InboxParts, "rules">,
    Omit<InboxSocketParts, "inbox_tokens" | "limits" | "applications">,
    InvitationParts,
    MailboxParts,
    PageSessionParts,
    SessionParts,
    UserParts,
    PushParts,
    SetupParts,
    SmsParts,
    StreamParts,
    TemplateParts,
    TrackingParts,
    TemplateRenderParts,
    WebhookRouteParts,
    ProviderParts,
    Omit<PublishParts, "rules">,
    DoctorRouteParts,
    QueueControlParts,
    RequestHandlerOptions {
  auth: AuthParts
  workers: Workers
  health: ServerHealth
  sessions: Sessions
  requests: RequestLog
  hits: Hits
  device_fates: DeviceFates
  inbox_tokens: InboxTokens
  applications: AppCredentials
}

const PUBLISH_CONTENTS = byChannel((channel) => PUBLISH_KITS[channel].content)

/** Every route there is. */
export function routeTable(parts: AppParts): AnyRoute[] {
  const { store, health } = parts
  const routes: AnyRoute[] = [
    ...healthRoutes(health),
    ...setupRoutes(parts),
    ...sessionRoutes(parts),
    ...userRoutes(parts),
    ...credentialRoutes(parts),
    ...accountRoutes(parts),
    ...memberRoutes(parts),
    ...invitationRoutes(parts),
    ...projectRoutes(parts),
    ...auditRoutes(parts),
    ...apiKeyRoutes(parts),
    ...usageRoutes(parts),
    ...aiUsageRoutes(parts),
    ...aiRoutes(parts),
    ...settingsRoutes(parts),
    ...reputationRoutes(parts),
    ...longJobRoutes(parts),
    ...domainRoutes(parts),
    ...emailRoutes(parts),
    ...smsRoutes(parts),
    ...pushRoutes(parts),
    ...ackRoutes(parts),
    ...deviceRoutes(parts),
    ...pushConfigRoutes(parts, PROVIDERS),
    ...templateRoutes(parts),
    ...templateRenderRoutes(parts),
    ...scheduledRoutes(parts),
    ...checkRoutes(parts),
    ...inboundEmailRoutes(parts),
    ...categoryRoutes(parts),
    ...preferenceRoutes(parts),
    ...suppressionRoutes(parts),
    ...subscriberRoutes(parts),
    ...topicRoutes(parts),
    ...publishRoutes(parts, PUBLISH_CONTENTS),
    ...inboxRoutes(parts),
    ...inboxTokenRoutes(parts),
    ...inboxSocketRoutes(parts),
    ...subscriberInboxRoutes(parts),
    ...keySetRoutes(parts),
    ...authRoutes({ ...parts.auth }), // a description is made without any part
    ...consentRoutes(parts),
    ...subscriberDataRoutes(parts),
    ...providerRoutes(parts, PROVIDERS),
    ...mailboxRoutes(parts),
    ...eventRoutes(store, health),
    ...queueControlRoutes(parts),
    ...doctorRoutes(parts),
    ...backupRoutes(parts),
    ...webhookRoutes(parts),
    ...queueRoutes(parts),
    ...streamRoutes(parts),
    ...requestLogRoutes(parts),
    ...scriptRoutes(parts),
  ]
  const pages = [
    ...consoleRoutes(parts),
    ...pageRoutes(parts),
    ...pageSessionRoutes(parts),
    ...unsubscribeRoutes(parts),
    ...linkRoutes(parts.auth),
    ...trackingRoutes(parts),
  ]
  return [...routes, ...docsRoutes([...routes, ...pages]), ...pages]
}

/** The whole interface behind one `fetch`. */
export function createApp(parts: AppParts) {
  const app = new Elysia({ normalize: false, strictPath: true })
  mountRoutes(app, routeTable(parts), { ...parts, absent_page: absentPage })
  return app
}
