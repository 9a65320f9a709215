CREATE TABLE `fan_out_contents` (
	`fan_out_id` blob NOT NULL,
	`name` text NOT NULL,
	`content` text NOT NULL,
	PRIMARY KEY(`fan_out_id`, `name`)
);
--> statement-breakpoint
CREATE TABLE `fan_out_parts` (
	`fan_out_id` blob NOT NULL,
	`part` integer NOT NULL,
	`cursor` integer NOT NULL,
	`until` integer NOT NULL,
	PRIMARY KEY(`fan_out_id`, `part`)
);
--> statement-breakpoint
CREATE TABLE `fan_outs` (
	`id` blob PRIMARY KEY NOT NULL,
	`account_id` blob NOT NULL,
	`project_id` blob NOT NULL,
	`kind` text NOT NULL,
	`status` text NOT NULL,
	`status_reason` text,
	`topic_id` blob,
	`topic_key` text,
	`audience` integer,
	`channels` text NOT NULL,
	`intent` text NOT NULL,
	`dedupe_key` text,
	`scheduled_at` integer,
	`expires_at` integer,
	`created_at` integer NOT NULL,
	`started_at` integer,
	`completed_at` integer
);
--> statement-breakpoint
CREATE INDEX `fan_outs_by_topic` ON `fan_outs` (`topic_id`,`id`) WHERE topic_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX `fan_outs_by_project` ON `fan_outs` (`project_id`,`id`);--> statement-breakpoint
CREATE INDEX `fan_outs_by_dedupe_key` ON `fan_outs` (`topic_id`,`dedupe_key`) WHERE dedupe_key IS NOT NULL;--> statement-breakpoint
CREATE INDEX `fan_outs_open` ON `fan_outs` (`project_id`,`status`) WHERE completed_at IS NULL;--> statement-breakpoint
CREATE TABLE `categories` (
	`id` blob PRIMARY KEY NOT NULL,
	`project_id` blob NOT NULL,
	`slug` text NOT NULL,
	`name` text NOT NULL,
	`description` text,
	`critical` integer NOT NULL,
	`default` text NOT NULL,
	`visibility` text NOT NULL,
	`channels` text NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `categories_by_slug` ON `categories` (`project_id`,`slug`);--> statement-breakpoint
CREATE TABLE `subscriber_tags` (
	`project_id` blob NOT NULL,
	`tag` text NOT NULL,
	`subscriber_id` blob NOT NULL,
	PRIMARY KEY(`project_id`, `tag`, `subscriber_id`)
);
--> statement-breakpoint
CREATE INDEX `subscriber_tags_by_subscriber` ON `subscriber_tags` (`subscriber_id`);--> statement-breakpoint
CREATE TABLE `subscriber_words` (
	`project_id` blob NOT NULL,
	`word` text NOT NULL,
	`subscriber_id` blob NOT NULL,
	PRIMARY KEY(`project_id`, `word`, `subscriber_id`)
);
--> statement-breakpoint
CREATE INDEX `subscriber_words_by_subscriber` ON `subscriber_words` (`subscriber_id`);--> statement-breakpoint
CREATE TABLE `subscribers` (
	`id` blob PRIMARY KEY NOT NULL,
	`project_id` blob NOT NULL,
	`external_id` text NOT NULL,
	`email` text,
	`email_key` text,
	`phone` text,
	`name` text,
	`avatar_url` text,
	`locale` text,
	`timezone` text,
	`metadata` text NOT NULL,
	`tags` text NOT NULL,
	`status` text NOT NULL,
	`preferences` text,
	`auth_user_id` blob,
	`last_seen_at` integer,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `subscribers_by_external_id` ON `subscribers` (`project_id`,`external_id`);--> statement-breakpoint
CREATE INDEX `subscribers_by_project` ON `subscribers` (`project_id`,`id`);--> statement-breakpoint
CREATE INDEX `subscribers_by_status` ON `subscribers` (`project_id`,`status`,`id`);--> statement-breakpoint
CREATE INDEX `subscribers_by_email` ON `subscribers` (`project_id`,`email_key`,`id`) WHERE email_key IS NOT NULL;--> statement-breakpoint
CREATE INDEX `subscribers_by_phone` ON `subscribers` (`project_id`,`phone`,`id`) WHERE phone IS NOT NULL;--> statement-breakpoint
CREATE TABLE `unsubscribes` (
	`id` blob PRIMARY KEY NOT NULL,
	`project_id` blob NOT NULL,
	`subscriber_id` blob NOT NULL,
	`channel` text NOT NULL,
	`category` text NOT NULL,
	`reason` text,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `unsubscribes_by_subscriber` ON `unsubscribes` (`subscriber_id`,`channel`,`category`);--> statement-breakpoint
CREATE INDEX `unsubscribes_by_project` ON `unsubscribes` (`project_id`,`id`);--> statement-breakpoint
CREATE TABLE `topic_members` (
	`topic_id` blob NOT NULL,
	`number` integer NOT NULL,
	`project_id` blob NOT NULL,
	`subscriber_id` blob NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`topic_id`, `number`)
);
--> statement-breakpoint
CREATE UNIQUE INDEX `topic_members_by_subscriber` ON `topic_members` (`subscriber_id`,`topic_id`);--> statement-breakpoint
CREATE INDEX `topic_members_by_project` ON `topic_members` (`project_id`);--> statement-breakpoint
CREATE TABLE `topics` (
	`id` blob PRIMARY KEY NOT NULL,
	`project_id` blob NOT NULL,
	`key` text NOT NULL,
	`name` text NOT NULL,
	`description` text,
	`default` text NOT NULL,
	`visibility` text NOT NULL,
	`subscriber_count` integer NOT NULL,
	`last_number` integer NOT NULL,
	`search_key` text NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `topics_by_key` ON `topics` (`project_id`,`key`);--> statement-breakpoint
CREATE INDEX `topics_by_project` ON `topics` (`project_id`,`id`);--> statement-breakpoint
ALTER TABLE `messages` ADD `subscriber_id` blob;--> statement-breakpoint
ALTER TABLE `messages` ADD `category` text;--> statement-breakpoint
ALTER TABLE `messages` ADD `fan_out_id` blob;--> statement-breakpoint
CREATE INDEX `messages_by_subscriber` ON `messages` (`project_id`,`subscriber_id`,`id`) WHERE subscriber_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX `messages_by_fan_out` ON `messages` (`project_id`,`fan_out_id`,`id`) WHERE fan_out_id IS NOT NULL;--> statement-breakpoint
CREATE UNIQUE INDEX `consents_by_subscriber` ON `consents` (`project_id`,`subscriber_id`,`number`);