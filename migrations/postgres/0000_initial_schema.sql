CREATE TABLE "audit_log" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"project_id" uuid,
	"actor" text NOT NULL,
	"actor_id" uuid,
	"action" text NOT NULL,
	"target_type" text NOT NULL,
	"target_id" text,
	"ip" text,
	"before" text,
	"after" text,
	"created_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "dkim_keys" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" uuid NOT NULL,
	"domain_id" uuid NOT NULL,
	"selector" text NOT NULL,
	"algorithm" text NOT NULL,
	"private_key" text NOT NULL,
	"public_key" text NOT NULL,
	"state" text NOT NULL,
	"seen_at" bigint,
	"retire_at" bigint,
	"created_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "domains" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"project_id" uuid NOT NULL,
	"domain" text NOT NULL,
	"status" text NOT NULL,
	"verification_token" text NOT NULL,
	"receiving" boolean NOT NULL,
	"tracking_subdomain" text,
	"return_path" text NOT NULL,
	"records" text NOT NULL,
	"provider_identity_status" text NOT NULL,
	"provider_dkim_status" text NOT NULL,
	"provider_dkim" text,
	"warning" text,
	"asked" text,
	"missing_since" bigint,
	"last_checked_at" bigint,
	"next_check_at" bigint,
	"window_began_at" bigint NOT NULL,
	"verified_at" bigint,
	"failed_at" bigint,
	"created_at" bigint NOT NULL,
	"updated_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "mta_sts_policies" (
	"domain" text COLLATE "C" PRIMARY KEY NOT NULL,
	"policy_id" text NOT NULL,
	"mode" text NOT NULL,
	"mx" text NOT NULL,
	"fetched_at" bigint NOT NULL,
	"expires_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "events" (
	"id" uuid PRIMARY KEY NOT NULL,
	"position" bigint DEFAULT (pg_current_xact_id()::text)::bigint NOT NULL,
	"account_id" uuid NOT NULL,
	"project_id" uuid NOT NULL,
	"subject_id" uuid,
	"type" text NOT NULL,
	"data" text NOT NULL,
	"detail" text,
	"created_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "idempotency" (
	"request" text COLLATE "C" PRIMARY KEY NOT NULL,
	"project_id" uuid NOT NULL,
	"body_hash" text NOT NULL,
	"status" bigint NOT NULL,
	"answer" text NOT NULL,
	"created_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "rate_windows" (
	"name" text NOT NULL,
	"ends" bigint NOT NULL,
	"given" bigint NOT NULL,
	CONSTRAINT "rate_windows_name_ends_pk" PRIMARY KEY("name","ends")
);
--> statement-breakpoint
CREATE TABLE "account_members" (
	"account_id" uuid NOT NULL,
	"user_id" uuid NOT NULL,
	"role" text NOT NULL,
	"joined_at" bigint NOT NULL,
	"last_active_at" bigint,
	CONSTRAINT "account_members_account_id_user_id_pk" PRIMARY KEY("account_id","user_id")
);
--> statement-breakpoint
CREATE TABLE "accounts" (
	"id" uuid PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"slug" text NOT NULL,
	"plan" text NOT NULL,
	"limits" text,
	"settings" text NOT NULL,
	"owner_user_id" uuid,
	"status" text NOT NULL,
	"status_reason" text,
	"sending_status" text NOT NULL,
	"sending_status_reason" text,
	"deleting_at" bigint,
	"created_at" bigint NOT NULL,
	"updated_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "api_keys" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"project_id" uuid NOT NULL,
	"name" text NOT NULL,
	"lookup" text NOT NULL,
	"key_hash" text NOT NULL,
	"prefix" text NOT NULL,
	"last4" text NOT NULL,
	"scopes" text NOT NULL,
	"domain_id" uuid,
	"ip_addresses" text NOT NULL,
	"created_by" text NOT NULL,
	"expires_at" bigint,
	"last_used_at" bigint,
	"last_used_ip" text,
	"created_at" bigint NOT NULL,
	"revoked_at" bigint,
	"successor_id" uuid
);
--> statement-breakpoint
CREATE TABLE "backup_codes" (
	"user_id" uuid NOT NULL,
	"code_hash" text NOT NULL,
	"used_at" bigint,
	"created_at" bigint NOT NULL,
	CONSTRAINT "backup_codes_user_id_code_hash_pk" PRIMARY KEY("user_id","code_hash")
);
--> statement-breakpoint
CREATE TABLE "console_sessions" (
	"id" uuid PRIMARY KEY NOT NULL,
	"user_id" uuid NOT NULL,
	"ip" text,
	"user_agent" text,
	"client_name" text,
	"created_at" bigint NOT NULL,
	"last_used_at" bigint NOT NULL,
	"expires_at" bigint NOT NULL,
	"revoked_at" bigint
);
--> statement-breakpoint
CREATE TABLE "console_users" (
	"id" uuid PRIMARY KEY NOT NULL,
	"email" text NOT NULL,
	"email_key" text NOT NULL,
	"name" text,
	"locale" text,
	"timezone" text,
	"password_hash" text NOT NULL,
	"operator" boolean NOT NULL,
	"status" text NOT NULL,
	"mfa_secret" text,
	"mfa_pending" text,
	"mfa_pending_at" bigint,
	"mfa_last_step" bigint,
	"created_at" bigint NOT NULL,
	"updated_at" bigint NOT NULL,
	"last_login_at" bigint
);
--> statement-breakpoint
CREATE TABLE "device_codes" (
	"id" uuid PRIMARY KEY NOT NULL,
	"device_code_hash" text NOT NULL,
	"user_code_hash" text NOT NULL,
	"client_name" text NOT NULL,
	"ip" text,
	"status" text NOT NULL,
	"user_id" uuid,
	"interval_seconds" bigint NOT NULL,
	"last_polled_at" bigint,
	"created_at" bigint NOT NULL,
	"expires_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "mfa_challenges" (
	"token_hash" text COLLATE "C" PRIMARY KEY NOT NULL,
	"user_id" uuid NOT NULL,
	"attempts" bigint NOT NULL,
	"used_at" bigint,
	"created_at" bigint NOT NULL,
	"expires_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "password_history" (
	"id" uuid PRIMARY KEY NOT NULL,
	"user_id" uuid NOT NULL,
	"password_hash" text NOT NULL,
	"created_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "password_resets" (
	"token_hash" text COLLATE "C" PRIMARY KEY NOT NULL,
	"user_id" uuid NOT NULL,
	"used_at" bigint,
	"created_at" bigint NOT NULL,
	"expires_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "project_members" (
	"project_id" uuid NOT NULL,
	"user_id" uuid NOT NULL,
	"role" text NOT NULL,
	"added_at" bigint NOT NULL,
	CONSTRAINT "project_members_project_id_user_id_pk" PRIMARY KEY("project_id","user_id")
);
--> statement-breakpoint
CREATE TABLE "projects" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"name" text NOT NULL,
	"slug" text NOT NULL,
	"status" text NOT NULL,
	"settings" text NOT NULL,
	"hidden" boolean NOT NULL,
	"deleting_at" bigint,
	"created_at" bigint NOT NULL,
	"updated_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "refresh_tokens" (
	"token_hash" text COLLATE "C" PRIMARY KEY NOT NULL,
	"session_id" uuid NOT NULL,
	"created_at" bigint NOT NULL,
	"used_at" bigint,
	"successor" text,
	"expires_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "throttles" (
	"subject" text COLLATE "C" PRIMARY KEY NOT NULL,
	"used" bigint NOT NULL,
	"ends_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "jobs" (
	"id" uuid PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"project_id" uuid,
	"payload" text NOT NULL,
	"priority" bigint NOT NULL,
	"state" bigint NOT NULL,
	"run_at" bigint NOT NULL,
	"attempt" bigint NOT NULL,
	"owner" text,
	"lease_until" bigint,
	"last_error" text,
	"created_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "long_jobs" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" uuid NOT NULL,
	"type" text NOT NULL,
	"status" text NOT NULL,
	"total" bigint NOT NULL,
	"done" bigint NOT NULL,
	"failed" bigint NOT NULL,
	"result" text,
	"error" text,
	"created_at" bigint NOT NULL,
	"completed_at" bigint
);
--> statement-breakpoint
CREATE TABLE "nodes" (
	"id" uuid PRIMARY KEY NOT NULL,
	"seen_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "paused_queues" (
	"queue" text COLLATE "C" PRIMARY KEY NOT NULL,
	"paused_by" text,
	"paused_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "mailbox_mails" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" uuid NOT NULL,
	"account_id" uuid NOT NULL,
	"email_id" uuid,
	"mail_from" text NOT NULL,
	"recipients" text NOT NULL,
	"to_address" text NOT NULL,
	"from_address" text NOT NULL,
	"subject" text NOT NULL,
	"subject_key" text NOT NULL,
	"raw" "bytea" NOT NULL,
	"size" bigint NOT NULL,
	"created_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "mailbox_recipients" (
	"mail_id" uuid NOT NULL,
	"project_id" uuid NOT NULL,
	"address" text NOT NULL,
	CONSTRAINT "mailbox_recipients_mail_id_address_pk" PRIMARY KEY("mail_id","address")
);
--> statement-breakpoint
CREATE TABLE "attempts" (
	"message_id" uuid NOT NULL,
	"attempt" bigint NOT NULL,
	"provider" text NOT NULL,
	"started_at" bigint NOT NULL,
	"duration_ms" bigint NOT NULL,
	"outcome" text NOT NULL,
	"mx" text,
	"tls" text,
	"smtp_code" bigint,
	"enhanced_code" text,
	"response" text,
	"transcript" text NOT NULL,
	CONSTRAINT "attempts_message_id_attempt_pk" PRIMARY KEY("message_id","attempt")
);
--> statement-breakpoint
CREATE TABLE "message_contents" (
	"message_id" uuid PRIMARY KEY NOT NULL,
	"content" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "message_raws" (
	"message_id" uuid PRIMARY KEY NOT NULL,
	"raw" "bytea" NOT NULL
);
--> statement-breakpoint
CREATE TABLE "message_tags" (
	"project_id" uuid NOT NULL,
	"tag" text NOT NULL,
	"message_id" uuid NOT NULL,
	CONSTRAINT "message_tags_project_id_tag_message_id_pk" PRIMARY KEY("project_id","tag","message_id")
);
--> statement-breakpoint
CREATE TABLE "messages" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"project_id" uuid NOT NULL,
	"channel" text NOT NULL,
	"status" text NOT NULL,
	"status_reason" text,
	"recipient" text NOT NULL,
	"sender" text,
	"sender_domain" text,
	"subject" text,
	"subject_key" text,
	"recipients" text NOT NULL,
	"envelope" text,
	"batch_id" uuid,
	"stream" text NOT NULL,
	"source" text NOT NULL,
	"tags" text NOT NULL,
	"metadata" text NOT NULL,
	"api_key_id" uuid,
	"idempotency_key" text,
	"rfc_message_id" text,
	"sandbox" boolean NOT NULL,
	"provider" text,
	"priority" bigint NOT NULL,
	"state" bigint NOT NULL,
	"run_at" bigint NOT NULL,
	"attempt" bigint NOT NULL,
	"owner" text,
	"lease_until" bigint,
	"error" text,
	"last_event_type" text,
	"last_event_at" bigint,
	"sent_at" bigint,
	"delivered_at" bigint,
	"bounced_at" bigint,
	"created_at" bigint NOT NULL,
	"updated_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "quotas" (
	"subject" text NOT NULL,
	"period" text NOT NULL,
	"metric" text NOT NULL,
	"used" bigint NOT NULL,
	"alerted" bigint NOT NULL,
	CONSTRAINT "quotas_subject_period_metric_pk" PRIMARY KEY("subject","period","metric")
);
--> statement-breakpoint
CREATE TABLE "send_buckets" (
	"project_id" uuid NOT NULL,
	"channel" text NOT NULL,
	"drained" bigint NOT NULL,
	CONSTRAINT "send_buckets_project_id_channel_pk" PRIMARY KEY("project_id","channel")
);
--> statement-breakpoint
CREATE TABLE "provider_configs" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"project_id" uuid NOT NULL,
	"kind" text NOT NULL,
	"provider" text NOT NULL,
	"name" text NOT NULL,
	"priority" bigint NOT NULL,
	"enabled" boolean NOT NULL,
	"status" text NOT NULL,
	"last_error" text,
	"trouble_since" bigint,
	"paused_until" bigint,
	"probe_message_id" uuid,
	"credentials" text,
	"settings" text NOT NULL,
	"callback_token_hash" text,
	"created_at" bigint NOT NULL,
	"updated_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "provider_receipts" (
	"config_id" uuid NOT NULL,
	"provider_message_id" text NOT NULL,
	"project_id" uuid NOT NULL,
	"message_id" uuid NOT NULL,
	"created_at" bigint NOT NULL,
	CONSTRAINT "provider_receipts_config_id_provider_message_id_pk" PRIMARY KEY("config_id","provider_message_id")
);
--> statement-breakpoint
CREATE TABLE "request_log" (
	"id" uuid PRIMARY KEY NOT NULL,
	"request_id" text NOT NULL,
	"project_id" uuid,
	"key_id" uuid,
	"method" text NOT NULL,
	"path" text NOT NULL,
	"status" bigint NOT NULL,
	"duration_ms" bigint NOT NULL,
	"ip" text NOT NULL,
	"error_code" text,
	"created_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "counters" (
	"project_id" uuid NOT NULL,
	"name" text NOT NULL,
	"shard" bigint NOT NULL,
	"value" bigint NOT NULL,
	CONSTRAINT "counters_project_id_name_shard_pk" PRIMARY KEY("project_id","name","shard")
);
--> statement-breakpoint
CREATE TABLE "instance_values" (
	"name" text COLLATE "C" PRIMARY KEY NOT NULL,
	"value" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "invitations" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"email" text NOT NULL,
	"email_key" text NOT NULL,
	"role" text NOT NULL,
	"projects" text NOT NULL,
	"token_hash" text NOT NULL,
	"status" text NOT NULL,
	"expires_at" bigint NOT NULL,
	"invited_by" uuid,
	"created_at" bigint NOT NULL,
	"accepted_at" bigint
);
--> statement-breakpoint
CREATE TABLE "usage_days" (
	"account_id" uuid NOT NULL,
	"project_id" uuid NOT NULL,
	"day" text NOT NULL,
	"metric" text NOT NULL,
	"shard" bigint NOT NULL,
	"value" bigint NOT NULL,
	CONSTRAINT "usage_days_account_id_day_project_id_metric_shard_pk" PRIMARY KEY("account_id","day","project_id","metric","shard")
);
--> statement-breakpoint
CREATE TABLE "webhook_deliveries" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" uuid NOT NULL,
	"webhook_id" uuid NOT NULL,
	"event_id" uuid NOT NULL,
	"event_type" text NOT NULL,
	"trigger" text NOT NULL,
	"status" text NOT NULL,
	"state" bigint NOT NULL,
	"run_at" bigint NOT NULL,
	"attempt" bigint NOT NULL,
	"owner" text,
	"lease_until" bigint,
	"attempts" bigint NOT NULL,
	"max_attempts" bigint NOT NULL,
	"by_hand" boolean NOT NULL,
	"body" text,
	"url" text,
	"request_headers" text,
	"response_headers" text,
	"last_response_body" text,
	"last_response_status" bigint,
	"last_error" text,
	"latency_ms" bigint,
	"attempt_log" text NOT NULL,
	"first_attempted_at" bigint,
	"last_attempted_at" bigint,
	"created_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "webhooks" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"project_id" uuid NOT NULL,
	"url" text NOT NULL,
	"events" text NOT NULL,
	"description" text,
	"headers" text NOT NULL,
	"sealed_headers" text,
	"header_format" text NOT NULL,
	"retry_policy" text NOT NULL,
	"rate_limit" bigint,
	"filter" text,
	"transform" text,
	"metadata" text NOT NULL,
	"version" text NOT NULL,
	"secret" text NOT NULL,
	"secret_hint" text NOT NULL,
	"previous_secret" text,
	"previous_secret_expires_at" bigint,
	"status" text NOT NULL,
	"disabled_reason" text,
	"disabled_at" bigint,
	"consecutive_failures" bigint NOT NULL,
	"last_triggered_at" bigint,
	"last_success_at" bigint,
	"last_failure_at" bigint,
	"unresolved_at" bigint,
	"next_slot_at" bigint,
	"created_at" bigint NOT NULL,
	"updated_at" bigint NOT NULL
);
--> statement-breakpoint
ALTER TABLE "dkim_keys" ADD CONSTRAINT "dkim_keys_domain_id_domains_id_fk" FOREIGN KEY ("domain_id") REFERENCES "public"."domains"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "projects" ADD CONSTRAINT "projects_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "mailbox_recipients" ADD CONSTRAINT "mailbox_recipients_mail_id_mailbox_mails_id_fk" FOREIGN KEY ("mail_id") REFERENCES "public"."mailbox_mails"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "message_contents" ADD CONSTRAINT "message_contents_message_id_messages_id_fk" FOREIGN KEY ("message_id") REFERENCES "public"."messages"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "message_raws" ADD CONSTRAINT "message_raws_message_id_messages_id_fk" FOREIGN KEY ("message_id") REFERENCES "public"."messages"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "audit_log_by_account" ON "audit_log" USING btree ("account_id","id");--> statement-breakpoint
CREATE INDEX "audit_log_by_actor" ON "audit_log" USING btree ("account_id","actor_id","id");--> statement-breakpoint
CREATE UNIQUE INDEX "dkim_keys_by_selector" ON "dkim_keys" USING btree ("domain_id","selector","algorithm");--> statement-breakpoint
CREATE UNIQUE INDEX "domains_by_name" ON "domains" USING btree ("project_id","domain");--> statement-breakpoint
CREATE INDEX "domains_by_project" ON "domains" USING btree ("project_id","id");--> statement-breakpoint
CREATE INDEX "domains_of_everybody" ON "domains" USING btree ("domain");--> statement-breakpoint
CREATE INDEX "events_by_project" ON "events" USING btree ("project_id","position","id");--> statement-breakpoint
CREATE INDEX "events_by_subject" ON "events" USING btree ("subject_id","id");--> statement-breakpoint
CREATE INDEX "idempotency_by_age" ON "idempotency" USING btree ("created_at");--> statement-breakpoint
CREATE INDEX "rate_windows_by_end" ON "rate_windows" USING btree ("ends");--> statement-breakpoint
CREATE INDEX "account_members_by_user" ON "account_members" USING btree ("user_id");--> statement-breakpoint
CREATE UNIQUE INDEX "accounts_by_slug" ON "accounts" USING btree ("slug");--> statement-breakpoint
CREATE INDEX "accounts_by_owner" ON "accounts" USING btree ("owner_user_id");--> statement-breakpoint
CREATE UNIQUE INDEX "api_keys_by_lookup" ON "api_keys" USING btree ("lookup");--> statement-breakpoint
CREATE INDEX "api_keys_by_project" ON "api_keys" USING btree ("project_id","id");--> statement-breakpoint
CREATE INDEX "console_sessions_by_user" ON "console_sessions" USING btree ("user_id","id");--> statement-breakpoint
CREATE INDEX "console_sessions_by_expiry" ON "console_sessions" USING btree ("expires_at");--> statement-breakpoint
CREATE UNIQUE INDEX "console_users_by_email" ON "console_users" USING btree ("email_key");--> statement-breakpoint
CREATE UNIQUE INDEX "device_codes_by_device" ON "device_codes" USING btree ("device_code_hash");--> statement-breakpoint
CREATE UNIQUE INDEX "device_codes_by_user" ON "device_codes" USING btree ("user_code_hash");--> statement-breakpoint
CREATE INDEX "device_codes_by_expiry" ON "device_codes" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "mfa_challenges_by_expiry" ON "mfa_challenges" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "password_history_by_user" ON "password_history" USING btree ("user_id","id");--> statement-breakpoint
CREATE INDEX "password_resets_by_user" ON "password_resets" USING btree ("user_id");--> statement-breakpoint
CREATE INDEX "password_resets_by_expiry" ON "password_resets" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "project_members_by_user" ON "project_members" USING btree ("user_id");--> statement-breakpoint
CREATE UNIQUE INDEX "projects_by_slug" ON "projects" USING btree ("account_id","slug");--> statement-breakpoint
CREATE INDEX "refresh_tokens_by_session" ON "refresh_tokens" USING btree ("session_id");--> statement-breakpoint
CREATE INDEX "refresh_tokens_by_expiry" ON "refresh_tokens" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "throttles_by_end" ON "throttles" USING btree ("ends_at");--> statement-breakpoint
CREATE INDEX "jobs_ready" ON "jobs" USING btree ("priority","run_at","id") WHERE state = 0;--> statement-breakpoint
CREATE INDEX "jobs_leased" ON "jobs" USING btree ("lease_until") WHERE state = 1;--> statement-breakpoint
CREATE INDEX "jobs_dead" ON "jobs" USING btree ("run_at") WHERE state = 2;--> statement-breakpoint
CREATE INDEX "jobs_held" ON "jobs" USING btree ("owner","id") WHERE state = 3;--> statement-breakpoint
CREATE INDEX "long_jobs_by_project" ON "long_jobs" USING btree ("project_id","id");--> statement-breakpoint
CREATE INDEX "long_jobs_by_end" ON "long_jobs" USING btree ("completed_at");--> statement-breakpoint
CREATE INDEX "mailbox_mails_by_project" ON "mailbox_mails" USING btree ("project_id","id");--> statement-breakpoint
CREATE INDEX "mailbox_recipients_by_address" ON "mailbox_recipients" USING btree ("project_id","address","mail_id");--> statement-breakpoint
CREATE INDEX "messages_by_project" ON "messages" USING btree ("project_id","channel","id");--> statement-breakpoint
CREATE INDEX "messages_by_status" ON "messages" USING btree ("project_id","status","id");--> statement-breakpoint
CREATE INDEX "messages_by_recipient" ON "messages" USING btree ("project_id","recipient","id");--> statement-breakpoint
CREATE INDEX "messages_ready" ON "messages" USING btree ("priority","run_at","id") WHERE state = 0;--> statement-breakpoint
CREATE INDEX "messages_leased" ON "messages" USING btree ("lease_until") WHERE state = 1;--> statement-breakpoint
CREATE INDEX "messages_dead" ON "messages" USING btree ("run_at") WHERE state = 2;--> statement-breakpoint
CREATE INDEX "messages_held" ON "messages" USING btree ("owner","id") WHERE state = 3;--> statement-breakpoint
CREATE UNIQUE INDEX "provider_configs_by_name" ON "provider_configs" USING btree ("project_id","kind","provider","name");--> statement-breakpoint
CREATE UNIQUE INDEX "provider_configs_by_callback" ON "provider_configs" USING btree ("callback_token_hash");--> statement-breakpoint
CREATE INDEX "provider_configs_in_trouble" ON "provider_configs" USING btree ("id") WHERE status = 'error';--> statement-breakpoint
CREATE INDEX "provider_receipts_by_message" ON "provider_receipts" USING btree ("message_id");--> statement-breakpoint
CREATE INDEX "request_log_by_project" ON "request_log" USING btree ("project_id","id");--> statement-breakpoint
CREATE INDEX "request_log_by_request" ON "request_log" USING btree ("request_id");--> statement-breakpoint
CREATE UNIQUE INDEX "invitations_by_token" ON "invitations" USING btree ("token_hash");--> statement-breakpoint
CREATE INDEX "invitations_by_account" ON "invitations" USING btree ("account_id","id");--> statement-breakpoint
CREATE INDEX "usage_days_by_project" ON "usage_days" USING btree ("project_id","day");--> statement-breakpoint
CREATE INDEX "webhook_deliveries_by_webhook" ON "webhook_deliveries" USING btree ("webhook_id","id");--> statement-breakpoint
CREATE INDEX "webhook_deliveries_by_event" ON "webhook_deliveries" USING btree ("event_id","webhook_id");--> statement-breakpoint
CREATE INDEX "webhook_deliveries_ready" ON "webhook_deliveries" USING btree ("webhook_id","run_at","id") WHERE state = 0;--> statement-breakpoint
CREATE INDEX "webhook_deliveries_leased" ON "webhook_deliveries" USING btree ("lease_until") WHERE state = 1;--> statement-breakpoint
CREATE INDEX "webhook_deliveries_dead" ON "webhook_deliveries" USING btree ("run_at") WHERE state = 2;--> statement-breakpoint
CREATE INDEX "webhook_deliveries_held" ON "webhook_deliveries" USING btree ("webhook_id","run_at") WHERE state = 3;--> statement-breakpoint
CREATE INDEX "webhooks_by_project" ON "webhooks" USING btree ("project_id","id");