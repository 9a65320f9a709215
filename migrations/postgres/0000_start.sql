CREATE TABLE "accounts" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"slug" text NOT NULL,
	"plan" text NOT NULL,
	"limits" text,
	"settings" text NOT NULL,
	"owner_user_id" text COLLATE "C",
	"status" text NOT NULL,
	"status_reason" text,
	"sending_status" text NOT NULL,
	"sending_status_reason" text,
	"deleting_at" bigint,
	"created_at" bigint NOT NULL,
	"updated_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "instance_values" (
	"name" text COLLATE "C" PRIMARY KEY NOT NULL,
	"value" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "api_keys" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"account_id" text COLLATE "C" NOT NULL,
	"project_id" text COLLATE "C" NOT NULL,
	"name" text NOT NULL,
	"lookup" text NOT NULL,
	"key_hash" text NOT NULL,
	"prefix" text NOT NULL,
	"last4" text NOT NULL,
	"scopes" text NOT NULL,
	"ip_addresses" text NOT NULL,
	"created_by" text NOT NULL,
	"expires_at" bigint,
	"last_used_at" bigint,
	"last_used_ip" text,
	"created_at" bigint NOT NULL,
	"revoked_at" bigint
);
--> statement-breakpoint
CREATE TABLE "audit_log" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"account_id" text COLLATE "C" NOT NULL,
	"project_id" text COLLATE "C",
	"actor" text NOT NULL,
	"actor_id" text COLLATE "C",
	"action" text NOT NULL,
	"target_type" text NOT NULL,
	"target_id" text COLLATE "C",
	"ip" text,
	"before" text,
	"after" text,
	"created_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "events" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"position" bigint DEFAULT (pg_current_xact_id()::text)::bigint NOT NULL,
	"account_id" text COLLATE "C" NOT NULL,
	"project_id" text COLLATE "C" NOT NULL,
	"subject_id" text COLLATE "C",
	"type" text NOT NULL,
	"data" text NOT NULL,
	"detail" text,
	"created_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "idempotency" (
	"request" text COLLATE "C" PRIMARY KEY NOT NULL,
	"project_id" text COLLATE "C" NOT NULL,
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
CREATE TABLE "mailbox_mails" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"project_id" text COLLATE "C" NOT NULL,
	"account_id" text COLLATE "C" NOT NULL,
	"email_id" text COLLATE "C",
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
	"mail_id" text COLLATE "C" NOT NULL,
	"project_id" text COLLATE "C" NOT NULL,
	"address" text NOT NULL,
	CONSTRAINT "mailbox_recipients_mail_id_address_pk" PRIMARY KEY("mail_id","address")
);
--> statement-breakpoint
CREATE TABLE "account_members" (
	"account_id" text COLLATE "C" NOT NULL,
	"user_id" text COLLATE "C" NOT NULL,
	"role" text NOT NULL,
	"joined_at" bigint NOT NULL,
	"last_active_at" bigint,
	CONSTRAINT "account_members_account_id_user_id_pk" PRIMARY KEY("account_id","user_id")
);
--> statement-breakpoint
CREATE TABLE "invitations" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"account_id" text COLLATE "C" NOT NULL,
	"email" text NOT NULL,
	"email_key" text NOT NULL,
	"role" text NOT NULL,
	"projects" text NOT NULL,
	"token_hash" text NOT NULL,
	"status" text NOT NULL,
	"expires_at" bigint NOT NULL,
	"invited_by" text COLLATE "C",
	"created_at" bigint NOT NULL,
	"accepted_at" bigint
);
--> statement-breakpoint
CREATE TABLE "project_members" (
	"project_id" text COLLATE "C" NOT NULL,
	"user_id" text COLLATE "C" NOT NULL,
	"role" text NOT NULL,
	"added_at" bigint NOT NULL,
	CONSTRAINT "project_members_project_id_user_id_pk" PRIMARY KEY("project_id","user_id")
);
--> statement-breakpoint
CREATE TABLE "attempts" (
	"message_id" text COLLATE "C" NOT NULL,
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
	"message_id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"content" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "message_raws" (
	"message_id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"raw" "bytea" NOT NULL
);
--> statement-breakpoint
CREATE TABLE "message_tags" (
	"project_id" text COLLATE "C" NOT NULL,
	"tag" text NOT NULL,
	"message_id" text COLLATE "C" NOT NULL,
	CONSTRAINT "message_tags_project_id_tag_message_id_pk" PRIMARY KEY("project_id","tag","message_id")
);
--> statement-breakpoint
CREATE TABLE "messages" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"account_id" text COLLATE "C" NOT NULL,
	"project_id" text COLLATE "C" NOT NULL,
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
	"batch_id" text COLLATE "C",
	"stream" text NOT NULL,
	"source" text NOT NULL,
	"tags" text NOT NULL,
	"metadata" text NOT NULL,
	"api_key_id" text COLLATE "C",
	"idempotency_key" text,
	"rfc_message_id" text,
	"sandbox" boolean NOT NULL,
	"provider" text,
	"attempts" bigint NOT NULL,
	"next_attempt_at" bigint,
	"error" text,
	"last_event_type" text,
	"last_event_at" bigint,
	"queued_at" bigint,
	"sent_at" bigint,
	"delivered_at" bigint,
	"bounced_at" bigint,
	"created_at" bigint NOT NULL,
	"updated_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "quotas" (
	"subject" text COLLATE "C" NOT NULL,
	"period" text NOT NULL,
	"metric" text NOT NULL,
	"used" bigint NOT NULL,
	"alerted" bigint NOT NULL,
	CONSTRAINT "quotas_subject_period_metric_pk" PRIMARY KEY("subject","period","metric")
);
--> statement-breakpoint
CREATE TABLE "send_buckets" (
	"project_id" text COLLATE "C" NOT NULL,
	"channel" text NOT NULL,
	"drained" bigint NOT NULL,
	CONSTRAINT "send_buckets_project_id_channel_pk" PRIMARY KEY("project_id","channel")
);
--> statement-breakpoint
CREATE TABLE "projects" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"account_id" text COLLATE "C" NOT NULL,
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
CREATE TABLE "backup_codes" (
	"user_id" text COLLATE "C" NOT NULL,
	"code_hash" text NOT NULL,
	"used_at" bigint,
	"created_at" bigint NOT NULL,
	CONSTRAINT "backup_codes_user_id_code_hash_pk" PRIMARY KEY("user_id","code_hash")
);
--> statement-breakpoint
CREATE TABLE "console_sessions" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"user_id" text COLLATE "C" NOT NULL,
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
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
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
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"device_code_hash" text NOT NULL,
	"user_code_hash" text NOT NULL,
	"client_name" text NOT NULL,
	"ip" text,
	"status" text NOT NULL,
	"user_id" text COLLATE "C",
	"interval_seconds" bigint NOT NULL,
	"last_polled_at" bigint,
	"created_at" bigint NOT NULL,
	"expires_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "mfa_challenges" (
	"token_hash" text COLLATE "C" PRIMARY KEY NOT NULL,
	"user_id" text COLLATE "C" NOT NULL,
	"attempts" bigint NOT NULL,
	"used_at" bigint,
	"created_at" bigint NOT NULL,
	"expires_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "password_history" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"user_id" text COLLATE "C" NOT NULL,
	"password_hash" text NOT NULL,
	"created_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "password_resets" (
	"token_hash" text COLLATE "C" PRIMARY KEY NOT NULL,
	"user_id" text COLLATE "C" NOT NULL,
	"used_at" bigint,
	"created_at" bigint NOT NULL,
	"expires_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "refresh_tokens" (
	"token_hash" text COLLATE "C" PRIMARY KEY NOT NULL,
	"session_id" text COLLATE "C" NOT NULL,
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
CREATE TABLE "counters" (
	"project_id" text COLLATE "C" NOT NULL,
	"name" text NOT NULL,
	"shard" bigint NOT NULL,
	"value" bigint NOT NULL,
	CONSTRAINT "counters_project_id_name_shard_pk" PRIMARY KEY("project_id","name","shard")
);
--> statement-breakpoint
CREATE TABLE "jobs" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"project_id" text COLLATE "C",
	"payload" text NOT NULL,
	"state" bigint NOT NULL,
	"priority" bigint NOT NULL,
	"run_at" bigint NOT NULL,
	"attempt" bigint NOT NULL,
	"owner" text,
	"lease_until" bigint,
	"last_error" text,
	"created_at" bigint NOT NULL,
	"dead_at" bigint
);
--> statement-breakpoint
CREATE TABLE "usage_days" (
	"account_id" text COLLATE "C" NOT NULL,
	"project_id" text COLLATE "C" NOT NULL,
	"day" text NOT NULL,
	"metric" text NOT NULL,
	"shard" bigint NOT NULL,
	"value" bigint NOT NULL,
	CONSTRAINT "usage_days_account_id_day_project_id_metric_shard_pk" PRIMARY KEY("account_id","day","project_id","metric","shard")
);
--> statement-breakpoint
ALTER TABLE "mailbox_recipients" ADD CONSTRAINT "mailbox_recipients_mail_id_mailbox_mails_id_fk" FOREIGN KEY ("mail_id") REFERENCES "public"."mailbox_mails"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "message_contents" ADD CONSTRAINT "message_contents_message_id_messages_id_fk" FOREIGN KEY ("message_id") REFERENCES "public"."messages"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "message_raws" ADD CONSTRAINT "message_raws_message_id_messages_id_fk" FOREIGN KEY ("message_id") REFERENCES "public"."messages"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "projects" ADD CONSTRAINT "projects_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "accounts_by_slug" ON "accounts" USING btree ("slug");--> statement-breakpoint
CREATE INDEX "accounts_by_owner" ON "accounts" USING btree ("owner_user_id");--> statement-breakpoint
CREATE UNIQUE INDEX "api_keys_by_lookup" ON "api_keys" USING btree ("lookup");--> statement-breakpoint
CREATE INDEX "api_keys_by_project" ON "api_keys" USING btree ("project_id","id");--> statement-breakpoint
CREATE INDEX "audit_log_by_account" ON "audit_log" USING btree ("account_id","id");--> statement-breakpoint
CREATE INDEX "audit_log_by_actor" ON "audit_log" USING btree ("account_id","actor_id","id");--> statement-breakpoint
CREATE INDEX "events_by_project" ON "events" USING btree ("project_id","position","id");--> statement-breakpoint
CREATE INDEX "events_by_subject" ON "events" USING btree ("subject_id","id");--> statement-breakpoint
CREATE INDEX "idempotency_by_age" ON "idempotency" USING btree ("created_at");--> statement-breakpoint
CREATE INDEX "rate_windows_by_end" ON "rate_windows" USING btree ("ends");--> statement-breakpoint
CREATE INDEX "mailbox_mails_by_project" ON "mailbox_mails" USING btree ("project_id","id");--> statement-breakpoint
CREATE INDEX "mailbox_recipients_by_address" ON "mailbox_recipients" USING btree ("project_id","address","mail_id");--> statement-breakpoint
CREATE INDEX "account_members_by_user" ON "account_members" USING btree ("user_id");--> statement-breakpoint
CREATE UNIQUE INDEX "invitations_by_token" ON "invitations" USING btree ("token_hash");--> statement-breakpoint
CREATE INDEX "invitations_by_account" ON "invitations" USING btree ("account_id","id");--> statement-breakpoint
CREATE INDEX "project_members_by_user" ON "project_members" USING btree ("user_id");--> statement-breakpoint
CREATE INDEX "messages_by_project" ON "messages" USING btree ("project_id","channel","id");--> statement-breakpoint
CREATE INDEX "messages_by_status" ON "messages" USING btree ("project_id","status","id");--> statement-breakpoint
CREATE INDEX "messages_by_recipient" ON "messages" USING btree ("project_id","recipient","id");--> statement-breakpoint
CREATE UNIQUE INDEX "projects_by_slug" ON "projects" USING btree ("account_id","slug");--> statement-breakpoint
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
CREATE INDEX "refresh_tokens_by_session" ON "refresh_tokens" USING btree ("session_id");--> statement-breakpoint
CREATE INDEX "refresh_tokens_by_expiry" ON "refresh_tokens" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "throttles_by_end" ON "throttles" USING btree ("ends_at");--> statement-breakpoint
CREATE INDEX "jobs_ready" ON "jobs" USING btree ("priority","run_at","id") WHERE state = 0;--> statement-breakpoint
CREATE INDEX "jobs_leased" ON "jobs" USING btree ("lease_until") WHERE state = 1;--> statement-breakpoint
CREATE INDEX "jobs_dead" ON "jobs" USING btree ("dead_at") WHERE state = 2;--> statement-breakpoint
CREATE INDEX "usage_days_by_project" ON "usage_days" USING btree ("project_id","day");