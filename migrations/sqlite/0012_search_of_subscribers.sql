ALTER TABLE `subscriber_tags` RENAME TO `old_subscriber_tags`;--> statement-breakpoint
CREATE TABLE `subscriber_tags` (
	`project_id` blob NOT NULL,
	`tag` text NOT NULL,
	`subscriber_id` blob NOT NULL,
	PRIMARY KEY(`project_id`, `tag`, `subscriber_id`)
) WITHOUT ROWID;
--> statement-breakpoint
INSERT INTO `subscriber_tags` (`project_id`, `tag`, `subscriber_id`) SELECT `project_id`, `tag`, `subscriber_id` FROM `old_subscriber_tags`;--> statement-breakpoint
DROP TABLE `old_subscriber_tags`;--> statement-breakpoint
ALTER TABLE `subscriber_words` RENAME TO `old_subscriber_words`;--> statement-breakpoint
CREATE TABLE `subscriber_words` (
	`project_id` blob NOT NULL,
	`word` text NOT NULL,
	`subscriber_id` blob NOT NULL,
	PRIMARY KEY(`project_id`, `word`, `subscriber_id`)
) WITHOUT ROWID;
--> statement-breakpoint
INSERT INTO `subscriber_words` (`project_id`, `word`, `subscriber_id`) SELECT `project_id`, `word`, `subscriber_id` FROM `old_subscriber_words`;--> statement-breakpoint
DROP TABLE `old_subscriber_words`;--> statement-breakpoint
ALTER TABLE `subscribers` ADD `search_key` text DEFAULT '' NOT NULL;--> statement-breakpoint
CREATE INDEX `topic_members_by_id` ON `topic_members` (`topic_id`,`subscriber_id`);
