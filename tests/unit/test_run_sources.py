"""Where files come from: uploads, folders, archives; what is too much is refused unread."""

import io
import json
import os
import stat
import zipfile

import pytest

from pages._ui.runs import bounds
from pages._ui.runs.opening import look, open_run, sources_of_path, sources_of_uploads
from pages._ui.runs.records import RunFileError
from tests.unit.run_files import opened, parquet, trl, trl_name, trl_run, uploaded, written, zipped


def names(sources):
    return [source.name for source in sources]


def refusal(function, *arguments):
    with pytest.raises(RunFileError) as error:
        function(*arguments)
    return str(error.value)


class TestFolders:
    def test_files_below_are_named_from_the_folder_on_in_the_order_of_numbers(self, tmp_path):
        written(tmp_path / "run", {"b/10.jsonl": b"x", "b/9.jsonl": b"x", "a.csv": b"x"})
        assert names(sources_of_path(str(tmp_path / "run"))) == [
            "run/a.csv",
            "run/b/9.jsonl",
            "run/b/10.jsonl",
        ]

    def test_weights_and_other_company_are_left_alone(self, tmp_path):
        others = ["model.safetensors", "optimizer.pt", "config.json", "README.md", ".git/x.json"]
        files = trl_run() | {f"checkpoint-1/{name}": b"x" for name in others}
        run = opened(written(tmp_path, files))
        assert run.notes == ()
        assert run.run.present.all()

    @pytest.mark.parametrize(
        "name",
        ["STABLE", "_SUCCESS", "x/DONE", "step.done", ".gitkeep", ".DS_Store", "__MACOSX/._a.json"],
    )
    def test_empty_markers_are_no_files_of_a_run(self, tmp_path, name):
        files = trl_run() | {f"completions/{name}": b""}
        assert opened(written(tmp_path, files)).notes == ()
        assert uploaded({"run.zip": zipped(files)}).notes == ()
        assert uploaded(files).notes == ()

    def test_an_empty_file_of_records_is_told(self):
        assert "empty.jsonl is empty" in uploaded(trl_run() | {"empty.jsonl": b""}).notes[0]
        assert "STABLE is empty" in refusal(uploaded, {"STABLE": b""})

    def test_a_path_that_does_not_exist(self, tmp_path):
        assert "does not exist" in refusal(sources_of_path, str(tmp_path / "no"))

    @pytest.mark.parametrize("path", ["a\x00b", "", "~nobody-at-all/x", "/dev/null"])
    def test_paths_that_are_none(self, path):
        assert refusal(sources_of_path, path)

    def test_an_empty_folder(self, tmp_path):
        assert "holds no file" in refusal(sources_of_path, str(tmp_path))

    def test_pipes_are_not_waited_for(self, tmp_path):
        os.mkfifo(tmp_path / "pipe.jsonl")
        assert "holds no file" in refusal(sources_of_path, str(tmp_path))
        assert "neither a file nor a folder" in refusal(
            sources_of_path, str(tmp_path / "pipe.jsonl")
        )

    def test_no_permission(self, tmp_path, monkeypatch):
        folder = written(tmp_path, trl_run())

        def refused(*_):
            raise PermissionError

        monkeypatch.setattr(os, "listdir", refused)
        assert "may not be read" in refusal(sources_of_path, folder)

    def test_a_file_that_may_not_be_read_is_named_and_the_others_are_read(self, tmp_path):
        folder = written(tmp_path, trl_run())
        closed = tmp_path / trl_name(2)
        closed.chmod(0)
        if os.access(closed, os.R_OK):
            closed.unlink()
            closed.symlink_to(tmp_path / "nowhere")
            assert opened(folder).run.every_step.tolist() == [1, 3]
            return
        run = opened(folder)
        closed.chmod(stat.S_IRUSR)
        assert run.run.every_step.tolist() == [1, 3]
        assert "may not be read" in run.notes[0]

    def test_a_file_that_goes_away_after_the_first_look_is_named(self, tmp_path):
        survey = look(sources_of_path(written(tmp_path, trl_run())))
        (tmp_path / trl_name(2)).unlink()
        run = open_run(survey)
        assert run.run.every_step.tolist() == [1, 3]
        assert "may not be read" in run.notes[0]


class TestArchives:
    def test_names_with_dots_are_only_names(self, tmp_path):
        data = zipped({"../../escape/completions_00001.parquet": parquet(trl())})
        run = uploaded({"run.zip": data})
        assert run.run.present.all()
        assert not (tmp_path.parent / "escape").exists()

    def test_archives_and_files_together(self):
        files = trl_run()
        last = files.pop(trl_name(3))
        run = uploaded({"run.zip": zipped(files), "completions_00003.parquet": last})
        assert run.run.every_step.tolist() in ([1, 2], [1, 2, 3])

    def test_an_archive_in_an_archive_is_named(self):
        run = uploaded({"run.zip": zipped(trl_run() | {"more.zip": zipped(trl_run())})})
        assert "more.zip is an archive inside" in run.notes[0]

    def test_a_password(self):
        data = bytearray(zipped({"a.csv": b"x"}))
        for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            data[data.index(mark) + place] |= 1
        assert "password" in refusal(sources_of_uploads, [("run.zip", bytes(data))])

    def test_damage(self):
        data = zipped(trl_run())
        assert "damaged zip" in refusal(sources_of_uploads, [("run.zip", data[:-30])])
        broken = bytearray(data)
        start = data.index(b"PAR1") if b"PAR1" in data else 60
        broken[start : start + 40] = bytes(40)
        run = uploaded({"run.zip": bytes(broken)})
        assert any("is damaged" in note for note in run.notes)

    def test_an_entry_never_gives_more_than_was_promised(self):
        data = bytearray(zipped({"big.csv": b"a,b\n" * 100_000}))
        entry = data.rindex(b"PK\x01\x02")
        data[entry + 24 : entry + 28] = (10).to_bytes(4, "little")
        (source,) = sources_of_uploads([("run.zip", bytes(data))])
        assert source.size == 10
        assert "damaged" in refusal(source.read)

    def test_an_empty_archive(self):
        buffer = io.BytesIO()
        zipfile.ZipFile(buffer, "w").close()
        said = refusal(lambda: look(sources_of_uploads([("run.zip", buffer.getvalue())])))
        assert "run.zip" in said


class TestBounds:
    def test_a_bomb_is_refused_before_it_is_unpacked(self):
        data = zipped({f"{at}.csv": bytes(100_000_000) for at in range(4)})
        assert len(data) < 500_000
        said = refusal(sources_of_uploads, [("run.zip", data)])
        assert "400,000,000 bytes once unpacked; at most 300,000,000" in said

    def test_a_path_may_hold_more_than_an_upload(self):
        assert bounds.BOUNDS["path bytes"][0] > bounds.BOUNDS["upload bytes"][0]

    def test_too_many_files(self, tmp_path, monkeypatch):
        monkeypatch.setitem(bounds.BOUNDS, "members", (2, "files", "Open fewer"))
        assert "3 files; at most 2" in refusal(sources_of_uploads, [("run.zip", zipped(trl_run()))])
        assert "3 files; at most 2" in refusal(sources_of_path, written(tmp_path, trl_run()))
        assert "3 files; at most 2" in refusal(sources_of_uploads, list(trl_run().items()))

    @pytest.mark.parametrize(
        ("key", "most"), [("rows", 11), ("numbers", 20), ("grid", 11), ("columns", 4)]
    )
    def test_too_much_in_the_files(self, key, most, monkeypatch):
        monkeypatch.setitem(bounds.BOUNDS, key, (most, key, "Open fewer steps"))
        assert f"at most {most}" in refusal(uploaded, trl_run())

    def test_every_message_ends_in_a_remedy(self):
        for most, what, remedy in bounds.BOUNDS.values():
            assert most > 0
            assert what
            assert remedy[0].isupper()
            assert not remedy.endswith(".")


class TestMixedFolders:
    def test_the_larger_of_two_runs_is_read_and_the_other_named(self, tmp_path):
        files = {f"big/{name}": data for name, data in trl_run().items()}
        files |= {f"small/{name}": data for name, data in trl_run(steps=[1, 2]).items()}
        run = opened(written(tmp_path, files))
        assert run.run.every_step.tolist() == [1, 2, 3]
        (note,) = run.notes
        assert "small/completions/completions_00001.parquet and 1 like it" in note

    def test_a_trainers_files_come_before_other_tables(self, tmp_path):
        big = b"prompt,completion,reward\n" + b"a,b,1\n" * 10_000
        run = opened(written(tmp_path, trl_run(steps=[1]) | {"other.csv": big}))
        assert run.format.key == "trl"
        assert "other.csv (table of completions) was left out" in run.notes[0]

    def test_what_cannot_be_read_among_good_files_is_named(self):
        bad = {
            "state.pt": b"\x80\x02x",
            "cut.parquet": parquet(trl())[:-9],
            "noise.bin2": bytes(range(256)),
            "empty.jsonl": b"",
            "strange.json": json.dumps({"a": 1}).encode(),
        }
        run = uploaded(trl_run() | bad)
        assert run.run.present.all()
        assert len(run.notes) == len(bad)
        for name in bad:
            assert any(name in note for note in run.notes), name

    def test_many_of_them_are_counted(self):
        run = uploaded(trl_run() | {f"{at}.pkl": b"x" for at in range(50)})
        assert len(run.notes) == 6
        assert "45 more" in run.notes[-1]

    def test_a_pickle_alone_is_refused(self):
        assert "pickle" in refusal(uploaded, {"rollout.pt": b"\x80\x02x"})

    def test_nothing_at_all(self):
        assert "holds no file" in refusal(sources_of_uploads, [])
        assert "Nothing" in refusal(look, ())
        assert "Nothing" in refusal(uploaded, {"vocabulary.json": b"[]"})
