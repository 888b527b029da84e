/* The least that a program must do to run a command and know its output and its end: what a harness is held against.
 *
 *   spawn FILE    FILE holds one command a lane: the number of arguments, the arguments, the number of environment
 *                 variables, the variables; each ends with a NUL byte
 *
 * For each line "N" on stdin it releases N lanes at one instant, each of which starts its command, reads its output to
 * the end and waits for it. Answers with a line of N latencies in ns (-1 for a command that failed), a line with a
 * number of bytes, and as many bytes: what the first lane's command wrote to stdout and stderr.
 *
 * One lane runs in the main thread, several in a thread each, which are there before the release.
 * posix_spawn is vfork and exec in glibc and musl. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { KEPT = 1 << 16 };

struct lane {
    char **argv, **env;
    int64_t ended;
    size_t size;
    char output[KEPT];
};

static sem_t arrived;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate = PTHREAD_COND_INITIALIZER;
static int released;

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void die(const char *what)
{
    fprintf(stderr, "spawn: %s: %s\n", what, strerror(errno));
    exit(2);
}

static void read_to_end(struct lane *lane, int fd)
{
    char rest[4096];
    for (;;) {
        size_t room = KEPT - lane->size;
        ssize_t got = room ? read(fd, lane->output + lane->size, room) : read(fd, rest, sizeof rest);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        if (room)
            lane->size += (size_t)got;
    }
    close(fd);
}

static void run(struct lane *lane)
{
    int out[2], err[2], status, error;
    pid_t pid;
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;

    lane->size = 0;
    if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
        die("pipe2");
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&files, out[1], 1);
    posix_spawn_file_actions_adddup2(&files, err[1], 2);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    error = posix_spawn(&pid, lane->argv[0], &files, &attributes, lane->argv, lane->env);
    close(out[1]);
    close(err[1]);
    if (error) {
        errno = error;
        die(lane->argv[0]);
    }
    read_to_end(lane, out[0]);
    read_to_end(lane, err[0]);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            die("waitpid");
    lane->ended = WIFEXITED(status) && WEXITSTATUS(status) == 0 ? now_ns() : -1;
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
}

static void *run_when_released(void *argument)
{
    sem_post(&arrived);
    pthread_mutex_lock(&lock);
    while (!released)
        pthread_cond_wait(&gate, &lock);
    pthread_mutex_unlock(&lock);
    run(argument);
    return NULL;
}

static int64_t burst(struct lane *lanes, int count)
{
    pthread_t threads[count];
    int64_t instant;

    released = 0;
    for (int i = 0; i < count; i++)
        if ((errno = pthread_create(&threads[i], NULL, run_when_released, &lanes[i])))
            die("pthread_create");
    for (int i = 0; i < count; i++)
        sem_wait(&arrived);
    pthread_mutex_lock(&lock);
    released = 1;
    instant = now_ns();
    pthread_cond_broadcast(&gate);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    return instant;
}

static char *next(char **at)
{
    char *text = *at;
    *at += strlen(text) + 1;
    return text;
}

static char **words(char **at)
{
    int count = atoi(next(at));
    char **list = calloc((size_t)count + 1, sizeof *list);
    for (int i = 0; i < count; i++)
        list[i] = next(at);
    return list;
}

int main(int argc, char **argv)
{
    FILE *file = argc == 2 ? fopen(argv[1], "re") : NULL;
    size_t size = 0, room = 1 << 24;
    char *data = malloc(room), *at = data;
    struct lane *lanes = NULL;
    int known = 0, count;

    if (!file || !data)
        die("usage: spawn FILE");
    size = fread(data, 1, room - 1, file);
    data[size] = 0;
    fclose(file);
    while (at < data + size) {
        lanes = realloc(lanes, (size_t)(known + 1) * sizeof *lanes);
        lanes[known].argv = words(&at);
        lanes[known].env = words(&at);
        known++;
    }
    sem_init(&arrived, 0, 0);
    while (scanf("%d", &count) == 1) {
        int64_t instant;
        if (count < 1 || count > known) {
            errno = EINVAL;
            die("number of lanes");
        }
        if (count == 1) {
            instant = now_ns();
            run(&lanes[0]);
        } else {
            instant = burst(lanes, count);
        }
        for (int i = 0; i < count; i++)
            printf("%lld ", lanes[i].ended < 0 ? -1 : (long long)(lanes[i].ended - instant));
        printf("\n%zu\n", lanes[0].size);
        fwrite(lanes[0].output, 1, lanes[0].size, stdout);
        fflush(stdout);
    }
    return 0;
}
