/**
 * The fields of records that come back from a change. A typing error in `--json=fields` is refused
 * by what a reading returns, but a change must be refused before it is made.
 */
const names = (text: string): readonly string[] => text.trim().split(/\s+/)

export const ref_fields = names("id status rfc_message_id to scheduled_at created_at")

export const email_fields = names(`
  id project_id batch_id rfc_message_id status status_reason from to cc bcc recipients reply_to
  subject html text headers tags metadata attachments provider attempts next_attempt_at error
  timeline last_event stream source sandbox api_key_id idempotency_key template category
  subscriber_id thread_id track_opens track_clicks open_count click_count opened_at last_opened_at
  clicked_at scheduled_at queued_at sent_at delivered_at bounced_at created_at updated_at`)

export const batch_fields = names("id total succeeded failed results")

export const key_fields = names(`
  id project_id name mode prefix last4 scopes domain_id status ip_addresses expires_at last_used_at
  last_used_ip created_by created_at revoked_at`)

export const domain_fields = names(`
  id project_id domain status verification_token dns_records records_total records_verified
  provider_identity_status provider_dkim_status receiving tracking_subdomain return_path
  dkim_selectors warning last_checked_at next_check_at verified_at failed_at created_at updated_at`)

export const provider_fields = names(`
  id kind provider name priority enabled status last_error next_probe_at credentials settings
  callback_url created_at updated_at`)

export const tested_fields = names("ok duration_ms detail")

export const job_fields = names("id type status progress result error created_at completed_at")

export const queue_fields = names("queue depth oldest_seconds running failed_24h paused")

export const account_fields = names(`
  id name slug plan status sending_status sending_status_reason limits usage settings created_at
  updated_at`)

/** As the one who runs the instance sees it. */
export const instance_account_fields = [...account_fields, "status_reason", "deleting_at"]

export const project_fields = names("id account_id name slug status sandbox created_at updated_at")

export const member_fields = names("user_id email name role mfa_enabled joined_at last_active_at")

export const project_member_fields = names("user_id email name role inherited added_at")

export const invitation_fields = names(
  "id email role projects status expires_at invited_by created_at",
)

export const user_fields = names(
  "id email name locale timezone mfa_enabled operator created_at last_login_at",
)

export const webhook_fields = names(`
  id project_id url events description headers header_format retry_policy rate_limit filter
  transform metadata version status enabled secret_hint consecutive_failures last_triggered_at
  last_success_at last_failure_at disabled_at disabled_reason held_count created_at updated_at`)

export const rotated_fields = names("secret previous_secret_expires_at")

export const webhook_test_fields = names(
  "delivered delivery_id response_status response_body duration_ms error",
)

export const delivery_fields = names(`
  id webhook_id msg_id event_id event_type status attempts max_attempts next_attempt_at
  last_response_status last_error latency_ms trigger first_attempted_at last_attempted_at
  completed_at created_at`)

export const envelope_fields = names("id type api_version created_at data")

export const settings_fields = names("default_from default_reply_to sandbox allow_subdomains")

export const deleted_fields = names("id deleted")

/** Of a delivery that `webhooks verify` tried: no answer of the API. */
export const trial_fields = names(
  "name about expected passed response_status duration_ms error note",
)
